"""Data that resembles a known kind is not described as one."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abi.erc20 import Token
from tests.wallets.signing.known.samples import (
    MESSAGES,
    NOW,
    OFFERED,
    OWN_DOMAIN,
    PERMIT2_DOMAIN,
    SIGNER,
    TOKEN,
    WANTED,
    sample,
)
from wallets.signing.known.phrases import Kind, plain
from wallets.signing.known.recognition import recognize
from wallets.signing.typed_data import read_typed_data

STARTS = st.sampled_from(list(MESSAGES))
ADDRESSES = st.binary(min_size=20, max_size=20).map(lambda raw: "0x" + raw.hex())
AMOUNTS = st.integers(0, 2**256 - 1)


def is_known(data: Any) -> bool:
    try:
        return recognize(read_typed_data(data)) is not None
    except ValueError:
        return False  # rejected completely


def without(mapping: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in mapping.items() if key != name}


@pytest.mark.parametrize("start", MESSAGES)
def test_sample_itself_is_known(start):
    assert is_known(sample(start))


@given(start=STARTS, data=st.data())
def test_any_change_of_a_type_makes_it_unknown(start, data):
    found = sample(start)
    names = [name for name in found["types"] if name != "EIP712Domain"]
    name = data.draw(st.sampled_from(names))
    members = found["types"][name]
    place = data.draw(st.integers(0, len(members) - 1))
    change = data.draw(st.sampled_from(["rename", "retype", "drop", "add", "swap"]))
    member = members[place]
    if change == "rename":
        old, member["name"] = member["name"], member["name"] + "_"
        values = found["message"]
        if name == found["primaryType"]:
            values[member["name"]] = values[old]
    elif change == "retype":
        member["type"] = {"uint256": "uint128", "address": "bytes20"}.get(
            member["type"], "bytes"
        )
    elif change == "drop":
        del members[place]
    elif change == "add":
        members.insert(place, {"name": "more", "type": "bytes32"})
        if name == found["primaryType"]:
            found["message"]["more"] = "0x" + "00" * 32
    else:
        other = data.draw(st.integers(0, len(members) - 1))
        if other == place:
            return
        members[place], members[other] = members[other], members[place]
    assert not is_known(found)


def test_members_that_have_changed_places_are_shown_as_they_are():
    """The names of spender and owner are exchanged."""
    found = sample("Permit(address owner")
    found["types"]["Permit"][0]["name"] = "spender"
    found["types"]["Permit"][1]["name"] = "owner"
    assert recognize(read_typed_data(found)) is None


@pytest.mark.parametrize(
    "name", ["PERMIT", "permit", "Permit_", "Рermit".encode().hex()]
)
def test_other_name_of_the_type_makes_it_unknown(name):
    found = sample("Permit(address owner")
    found["types"][f"X{name}"] = found["types"].pop("Permit")
    found["primaryType"] = f"X{name}"
    assert recognize(read_typed_data(found)) is None


@pytest.mark.parametrize("start", [s for s in MESSAGES if MESSAGES[s][0] != OWN_DOMAIN])
@pytest.mark.parametrize(
    "change",
    [
        {"name": "Permit3"},
        {"name": "P\u0435rmit2"},
        {"name": "Permit2 "},
        {"name": "permit2"},
        {"name": ""},
        {"verifyingContract": TOKEN},
        {"salt": "0x" + "00" * 32},
        {"version": "2"},
        {"version": ""},
    ],
)
def test_other_domain_of_a_fixed_contract_makes_it_unknown(start, change):
    domain = {**MESSAGES[start][0], **change}
    assert not is_known(sample(start, domain))


@pytest.mark.parametrize("start", MESSAGES)
@pytest.mark.parametrize("name", ["name", "chainId", "verifyingContract"])
def test_domain_without_a_member_makes_it_unknown(start, name):
    assert not is_known(sample(start, without(MESSAGES[start][0], name)))


@pytest.mark.parametrize("start", [s for s in MESSAGES if MESSAGES[s][0] == OWN_DOMAIN])
def test_domain_of_a_token_with_a_salt_is_unknown(start):
    assert not is_known(sample(start, {**OWN_DOMAIN, "salt": "0x" + "00" * 32}))


def test_version_of_one_deployment_with_the_address_of_another_is_unknown():
    domain = {**MESSAGES["OrderComponents"][0], "version": "1.5"}
    assert not is_known(sample("OrderComponents", domain))


def test_domain_type_that_hides_a_member_is_unknown():
    """The domain has a version that its type, and so the signature, does not cover."""
    found = sample("TransferWithAuthorization")
    found["types"]["EIP712Domain"] = [
        one for one in found["types"]["EIP712Domain"] if one["name"] != "version"
    ]
    assert recognize(read_typed_data(found)) is None


def test_members_that_are_not_signed_are_not_said():
    found = sample("Permit(address owner")
    found["message"] |= {"amount": 1, "note": "only 1 unit"}
    found["domain"] |= {"symbol": "USDC"}
    known = recognize(read_typed_data(found))
    assert known is not None
    summary = known.summary(SIGNER, {}, NOW)
    assert summary is not None
    assert "1,500" in plain(summary.main)
    assert "USDC" not in plain(summary.main)


@given(name=st.text(max_size=20), version=st.text(max_size=20))
def test_texts_of_a_stranger_are_in_no_sentence(name, version):
    domain = {**OWN_DOMAIN, "name": f"<{name}>", "version": f"<{version}>"}
    try:
        known = recognize(read_typed_data(sample("Permit(address owner", domain)))
    except ValueError:
        return  # a lone surrogate
    assert known is not None
    summary = known.summary(SIGNER, {}, NOW)
    assert summary is not None
    assert "<" not in plain(summary.main)


@given(spender=ADDRESSES, value=AMOUNTS, deadline=AMOUNTS)
def test_permit_says_the_values_that_are_signed(spender, value, deadline):
    changes = {"spender": spender, "value": str(value), "deadline": str(deadline)}
    data = read_typed_data(sample("Permit(address owner", **changes))
    known = recognize(data)
    assert known is not None
    summary = known.summary(SIGNER, {}, NOW)
    assert summary is not None
    assert data.message["spender"] == spender
    named = [p.text.lower() for p in summary.main if p.kind == Kind.ADDRESS]
    assert sorted(named) == sorted([spender, TOKEN])
    text = plain(summary.main)
    assert ("unlimited" in text) == (value >= 2**255)
    if 0 < value < 2**255:
        amounts = re.findall(r"up to ([\d,]+) smallest", text)
        assert [int(one.replace(",", "")) for one in amounts] == [value]


@given(value=st.integers(1, 2**255 - 1), decimals=st.integers(0, 36))
def test_amounts_are_exact_whatever_the_decimals(value, decimals):
    known = recognize(read_typed_data(sample("Permit(address owner", value=str(value))))
    assert known is not None
    summary = known.summary(SIGNER, {TOKEN: Token("ABC", decimals)}, NOW)
    assert summary is not None
    (shown,) = re.findall(r"up to ([\d,.]+) “ABC”", plain(summary.main))
    whole, _, fraction = shown.replace(",", "").partition(".")
    assert int(whole) * 10**decimals + int(fraction.ljust(decimals, "0") or 0) == value


@given(
    offered=st.integers(0, 2**256 - 1),
    wanted=st.integers(0, 2**256 - 1),
    recipient=ADDRESSES,
)
def test_order_says_every_recipient_and_amount(offered, wanted, recipient):
    item = {**OFFERED, "itemType": 1}
    item |= {"startAmount": str(offered), "endAmount": str(offered)}
    paid = {**WANTED, "itemType": 1, "token": TOKEN, "recipient": recipient}
    paid |= {"startAmount": str(wanted), "endAmount": str(wanted)}
    changes = {"offer": [item], "consideration": [paid]}
    known = recognize(read_typed_data(sample("OrderComponents", **changes)))
    assert known is not None
    summary = known.summary(SIGNER, {}, NOW)
    assert summary is not None
    text = plain(summary.main)
    assert re.findall(r"([\d,]+) smallest", text) == [f"{offered:,}", f"{wanted:,}"]
    assert recipient in text.lower()


def test_same_type_for_another_contract_is_no_permit2():
    """Any contract can have this name."""
    domain = {**PERMIT2_DOMAIN, "verifyingContract": "0x" + "22" * 20}
    assert not is_known(sample("PermitSingle", domain))
