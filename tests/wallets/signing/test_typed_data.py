"""EIP-712 data: the displayed values are the signed ones, for any input."""

from __future__ import annotations

import copy
import json

import pytest
from eth_account import Account
from eth_account.messages import encode_typed_data
from eth_utils import keccak
from hypothesis import given
from hypothesis import strategies as st

from wallets.signing import typed_data
from wallets.signing.typed_data import (
    MAX_BYTES,
    MAX_VALUES,
    Field,
    read_typed_data,
    sign_typed_data,
)

COW = keccak(text="cow")
PERSON = [{"name": "name", "type": "string"}, {"name": "wallet", "type": "address"}]
MAIL = {
    "types": {
        "EIP712Domain": [
            {"name": "name", "type": "string"},
            {"name": "version", "type": "string"},
            {"name": "chainId", "type": "uint256"},
            {"name": "verifyingContract", "type": "address"},
        ],
        "Person": PERSON,
        "Mail": [
            {"name": "from", "type": "Person"},
            {"name": "to", "type": "Person"},
            {"name": "contents", "type": "string"},
        ],
    },
    "primaryType": "Mail",
    "domain": {
        "name": "Ether Mail",
        "version": "1",
        "chainId": 1,
        "verifyingContract": "0xCcCCccccCCCCcCCCCCCcCcCccCcCCCcCcccccccC",
    },
    "message": {
        "from": {
            "name": "Cow",
            "wallet": "0xCD2a3d9F938E13CD947Ec05AbC7FE734Df8DD826",
        },
        "to": {"name": "Bob", "wallet": "0xbBbBBBBbbBBBbbbBbbBbbbbBBbBbbbbBbBbbBBbB"},
        "contents": "Hello, Bob!",
    },
}
"""The example of EIP-712."""


def structure(members: dict[str, str], message: object, **types: object):
    """Return data of one structure, with a domain that has a name."""
    own = [{"name": name, "type": kind} for name, kind in members.items()]
    domain = [{"name": "name", "type": "string"}]
    return {
        "types": {"EIP712Domain": domain, "It": own, **types},
        "primaryType": "It",
        "domain": {"name": "d"},
        "message": message,
    }


def one(type_name: str, value: object, **types: object):
    return structure({"a": type_name}, {"a": value}, **types)


@pytest.mark.parametrize("given_as", [MAIL, json.dumps(MAIL)], ids=["object", "text"])
def test_signature_is_that_of_the_standards_example(given_as):
    signature = sign_typed_data(read_typed_data(given_as), COW)
    assert signature.hex() == (
        "4355c47d63924e8a72e509b65029052eb6c299d53a04e167c5775fd466751c9d"
        "07299936d304c153f6443dfa05f40ff007d72911b6f72307f996231605b915621c"
    )


def test_data_is_laid_out_as_a_tree():
    data = read_typed_data(MAIL)
    assert data.chain_id == 1
    assert data.domain_fields()[3] == Field(
        "verifyingContract", "address", "0x" + "cc" * 20
    )
    sender, _, contents = data.fields()
    assert sender == Field(
        "from",
        "Person",
        None,
        (
            Field("name", "string", "Cow"),
            Field("wallet", "address", "0xcd2a3d9f938e13cd947ec05abc7fe734df8dd826"),
        ),
    )
    assert contents == Field("contents", "string", "Hello, Bob!")


def test_what_no_type_names_is_neither_signed_nor_shown():
    more = copy.deepcopy(MAIL)
    more["message"]["hidden"] = "all my money"
    more["domain"]["salt"] = "0x" + "00" * 32
    more["types"]["Unused"] = [{"name": "x", "type": "uint8"}]
    data = read_typed_data(more)
    assert data == read_typed_data(MAIL)
    assert "money" not in repr(data.fields())


def test_kept_text_reads_as_the_same():
    data = read_typed_data(
        one("bytes[2][]", [["0x00", "0x"], ["0xff", "0x12"]])
        | {"message": {"a": [["0x00", "0x"], ["0xff", "0x12"]]}}
    )
    assert read_typed_data(data.to_text()) == data
    assert sign_typed_data(read_typed_data(data.to_text()), COW) == (
        sign_typed_data(data, COW)
    )
    assert read_typed_data(read_typed_data(MAIL).to_text()) == read_typed_data(MAIL)


def test_a_structure_may_hold_its_own_kind_and_null_ends_it():
    data = structure(
        {"text": "string", "answers": "It", "more": "It[]"},
        {
            "text": "a",
            "answers": {"text": "b", "answers": None, "more": []},
            "more": [],
        },
    )
    read = read_typed_data(data)
    assert read.fields()[1].fields[1] == Field("answers", "It", "null")
    signed = Account.sign_message(encode_typed_data(full_message=data), COW)
    assert sign_typed_data(read, COW) == bytes(signed.signature)


@pytest.mark.parametrize(
    ("type_name", "value", "shown"),
    [
        ("uint256", 5, "5"),
        ("uint256", "5", "5"),
        ("uint256", "0xff", "255"),
        ("uint256", str(2**256 - 1), str(2**256 - 1)),
        ("int8", -128, "-128"),
        ("int256", "-0x1", "-1"),
        ("bool", True, "true"),
        ("bool", False, "false"),
        ("bytes4", "0xdeadbeef", "0xdeadbeef"),
        ("bytes", "0x", "0x"),
        ("string", "", ""),
    ],
)
def test_values_are_shown_as_they_are_signed(type_name, value, shown):
    data = one(type_name, value)
    read = read_typed_data(data)
    assert read.fields() == (Field("a", type_name, shown),)
    assert len(sign_typed_data(read, COW)) == 65


@pytest.mark.parametrize(
    ("type_name", "value"),
    [
        ("uint256", -1),
        ("uint8", 256),
        ("int8", 128),
        ("uint256", 1.5),
        ("uint256", 1e77),
        ("uint256", True),
        ("uint256", ""),
        ("uint256", None),
        ("uint256", "five"),
        ("bool", "false"),
        ("bool", 0),
        ("address", "0x12"),
        ("address", None),
        ("address", "vitalik.eth"),
        ("bytes4", "0xdead"),
        ("bytes4", "dead"),
        ("bytes", "text"),
        ("bytes", [1]),
        ("string", 5),
        ("string", None),
        ("string", "\ud800"),
        ("uint8[]", 5),
        ("uint8[2]", [1]),
        ("uint8[]", [None]),
        ("Nested", 5),
    ],
)
def test_values_that_do_not_fit_their_type_are_refused_with_their_place(
    type_name, value
):
    nested = [{"name": "b", "type": "string"}]
    with pytest.raises(ValueError, match=r"^message\.a"):
        read_typed_data(one(type_name, value, Nested=nested))


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"types": None}, "types"),
        ({"types": {}}, "primaryType"),
        ({"primaryType": "Nobody"}, "primaryType"),
        ({"primaryType": "EIP712Domain"}, "primaryType"),
        ({"primaryType": ["Mail"]}, "primaryType"),
        ({"domain": None}, "domain"),
        ({"domain": {"name": "x"}}, "domain.version"),
        ({"domain": {**MAIL["domain"], "chainId": "one"}}, "domain.chainId"),
        ({"message": None}, "message"),
        ({"message": {}}, "message.contents"),
    ],
)
def test_malformed_data_is_refused_with_its_place(change, place):
    with pytest.raises(ValueError, match=rf"^{place}: "):
        read_typed_data({**MAIL, **change})


@pytest.mark.parametrize(
    "types",
    [
        {"Mail": "x"},
        {"Mail": [5]},
        {"Mail": [{"name": "a"}]},
        {"Mail": [{"name": "a", "type": "Nowhere"}]},
        {"Mail": [{"name": "a", "type": "uint"}]},
        {"Mail": [{"name": "a", "type": "uint7"}]},
        {"Mail": [{"name": "a", "type": "uint8[0]"}]},
        {"Mail": [{"name": "a", "type": "uint8[-1]"}]},
        {"Mail": [{"name": "a,b", "type": "uint8"}]},
        {"Mail": [{"name": "a", "type": "uint8"}] * 2},
        {"uint8": []},
        {"A(uint8 b)": []},
        {"EIP712Domain": [{"name": "name", "type": "bytes"}]},
        {"EIP712Domain": list(reversed(MAIL["types"]["EIP712Domain"]))},
        {"Person": [*PERSON, {"name": "mails", "type": "Mail[]"}]},
    ],
)
def test_types_that_others_would_sign_otherwise_are_refused(types):
    with pytest.raises(ValueError, match=r"^types"):
        read_typed_data({**MAIL, "types": {**MAIL["types"], **types}})


def test_domain_has_to_have_its_type():
    types = {k: v for k, v in MAIL["types"].items() if k != "EIP712Domain"}
    with pytest.raises(ValueError, match=r"^types\.EIP712Domain: required"):
        read_typed_data({**MAIL, "types": types})


@pytest.mark.parametrize("value", ["", "5", "[]", "{", 5, None, [], {"a": object()}])
def test_what_is_no_json_object_is_refused(value):
    with pytest.raises(ValueError):
        read_typed_data(value)


def test_size_depth_and_number_are_limited():
    with pytest.raises(ValueError, match="longer than"):
        read_typed_data(one("string", "x" * MAX_BYTES))
    with pytest.raises(ValueError, match="values"):
        read_typed_data(one("uint8[]", [1] * MAX_VALUES))
    deep: object = None
    for _ in range(20):
        deep = {"a": deep}
    with pytest.raises(ValueError, match="nested more than"):
        read_typed_data(structure({"a": "It"}, deep))
    with pytest.raises(ValueError, match="not JSON"):
        read_typed_data("[" * 60_000)


ATOMS = {
    "uint256": st.integers(0, 2**256 - 1).map(str),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "bool": st.booleans(),
    "address": st.binary(min_size=20, max_size=20).map(lambda b: "0x" + b.hex()),
    "bytes32": st.binary(min_size=32, max_size=32).map(lambda b: "0x" + b.hex()),
    "bytes": st.binary(max_size=40).map(lambda b: "0x" + b.hex()),
    "string": st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
}


@st.composite
def documents(draw):
    inner = draw(st.lists(st.sampled_from(sorted(ATOMS)), min_size=1, max_size=4))
    value = {f"m{n}": draw(ATOMS[kind]) for n, kind in enumerate(inner)}
    members = [{"name": f"m{n}", "type": kind} for n, kind in enumerate(inner)]
    kind = draw(st.sampled_from(sorted(ATOMS)))
    many = draw(st.lists(ATOMS[kind], max_size=3))
    return structure(
        {"x": "Inner", "all": "Inner[]", "many": f"{kind}[]"},
        {"x": value, "all": [value] * draw(st.integers(0, 2)), "many": many},
        Inner=members,
    )


@given(documents())
def test_what_is_read_is_hashed_as_eth_account_hashes_what_was_sent(document):
    """Both hash strictly typed values equally, and the stored text has the same hash."""
    data = read_typed_data(document)
    ours = typed_data.read_typed_data(data.to_text())
    signed = Account.sign_message(encode_typed_data(full_message=document), COW)
    assert sign_typed_data(ours, COW) == bytes(signed.signature)
