from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jsonrpc.text import Number
from nodeapi import encoding
from nodeapi.encoding import BlockReference

WORD = "0x" + "ab" * 32
BIG = Number("1.5")


def mismatch(value: str, go_type: str) -> str:
    return f"json: cannot unmarshal {value} into Go value of type {go_type}"


def fault(decoder, value) -> str:
    """Return the error text of a decoder for an invalid value."""
    with pytest.raises(ValueError) as caught:
        decoder(value)
    return str(caught.value)


@given(st.integers(min_value=0, max_value=2**256 - 1))
def test_quantity_has_no_leading_zeros(value):
    text = encoding.quantity(value).decode()
    assert text == f'"{hex(value)}"'


@given(st.binary(max_size=64))
def test_data_is_read_as_it_was_written(value):
    text = encoding.data(value).decode().strip('"')
    assert encoding.any_data(text) == value
    assert encoding.any_data(text.upper().replace("0X", "0x")) == value


FIXED = [
    (encoding.hash32, 32, "common.Hash"),
    (encoding.address, 20, "common.Address"),
]


@pytest.mark.parametrize(("decoder", "size", "go_type"), FIXED)
def test_fixed_data_has_an_error_text(decoder, size, go_type):
    digits = "aB" * size
    assert decoder("0x" + digits) == decoder("0X" + digits) == b"\xab" * size
    for value in (1, BIG, 1.5, True, None, [], {}):
        assert fault(decoder, value) == mismatch("non-string", go_type)
    prefix = mismatch("hex string without 0x prefix", go_type)
    odd = mismatch("hex string of odd length", go_type)
    bad = mismatch("invalid hex string", go_type)
    length = "hex string has length {}, want {} for " + go_type
    assert fault(decoder, digits) == fault(decoder, "x") == prefix
    assert fault(decoder, " 0x" + digits) == prefix
    assert fault(decoder, "0x" + digits[1:]) == fault(decoder, "0xz") == odd
    assert fault(decoder, "") == length.format(0, 2 * size)
    assert fault(decoder, "0x") == length.format(0, 2 * size)
    assert fault(decoder, "0xzz") == length.format(2, 2 * size)
    assert fault(decoder, "0x" + digits + "00") == length.format(2 * size + 2, 2 * size)
    for wrong in ("zz", " a", "é", "-1", "_1"):
        assert fault(decoder, "0x" + digits[:-2] + wrong) == bad


def test_whitespace_does_not_pass_for_digits():
    value = "0x" + "ab" * 31 + "  "
    assert fault(encoding.hash32, value) == mismatch(
        "invalid hex string", "common.Hash"
    )


def test_data_of_any_length_has_an_error_text():
    go_type = "hexutil.Bytes"
    assert encoding.any_data("") == encoding.any_data("0x") == b""
    assert fault(encoding.any_data, 5) == mismatch("non-string", go_type)
    assert fault(encoding.any_data, "0xa") == mismatch(
        "hex string of odd length", go_type
    )
    assert fault(encoding.any_data, "0xzz") == mismatch("invalid hex string", go_type)


def test_boolean_is_true_false_or_null():
    assert encoding.boolean(True) is True
    assert encoding.boolean(False) is encoding.boolean(None) is False
    for value, kind in [("", "string"), (1, "number"), ([], "array"), ({}, "object")]:
        assert fault(encoding.boolean, value) == mismatch(kind, "bool")
    assert fault(encoding.boolean, BIG) == mismatch("number", "bool")


def test_text_is_a_string_or_null():
    assert encoding.text("é") == "é"
    assert encoding.text(None) == ""
    assert fault(encoding.text, 1) == mismatch("number", "string")
    assert fault(encoding.text, True) == mismatch("bool", "string")
    assert fault(encoding.text, []) == mismatch("array", "string")


@given(st.integers(min_value=0, max_value=2**64 - 1))
def test_index_takes_every_unsigned_number_of_64_bits(value):
    assert encoding.index(hex(value)) == value


def test_index_has_an_error_text():
    go_type = "hexutil.Uint"
    assert encoding.index("") == encoding.index("0X0") == 0
    for value in (0, None, True, []):
        assert fault(encoding.index, value) == mismatch("non-string", go_type)
    for value, words in [
        ("0x", 'hex string "0x"'),
        ("5", "hex string without 0x prefix"),
        ("0x00", "hex number with leading zero digits"),
        ("0x01", "hex number with leading zero digits"),
        ("0x1" + "0" * 16, "hex number > 64 bits"),
        ("0x1" + "z" * 16, "hex number > 64 bits"),
        ("0xz", "invalid hex string"),
        ("0x-1", "invalid hex string"),
        ("0x1_0", "invalid hex string"),
        ("0x 1", "invalid hex string"),
        ("0x١", "invalid hex string"),
    ]:
        assert fault(encoding.index, value) == mismatch(words, go_type)


@given(st.integers(min_value=0, max_value=2**63 - 1))
def test_block_number_takes_every_number_of_63_bits(value):
    assert encoding.block_number(hex(value)) == value
    assert encoding.block_number_or_hash(hex(value)) == BlockReference(number=value)


@pytest.mark.parametrize("tag", sorted(encoding.TAGS))
def test_tags_are_blocks(tag):
    assert encoding.block_number(tag) == tag
    assert encoding.block_number_or_hash(tag) == BlockReference(tag=tag)


NUMBERS = [
    ("", "empty hex string"),
    ("0x", 'hex string "0x"'),
    ("1", "hex string without 0x prefix"),
    ("Latest", "hex string without 0x prefix"),
    ("latest ", "hex string without 0x prefix"),
    ("0x01", "hex number with leading zero digits"),
    ("0xg", "invalid hex string"),
    ("0x+1", "invalid hex string"),
    ("0x" + "f" * 16 + "g", "invalid hex string"),
    ("0x" + "f" * 17 + "g", "hex number > 64 bits"),
    ("0x1" + "0" * 16, "hex number > 64 bits"),
]


@pytest.mark.parametrize(("value", "words"), NUMBERS)
def test_block_number_has_an_error_text(value, words):
    assert fault(encoding.block_number, value) == words
    assert fault(encoding.block_number_or_hash, value) == words


def test_block_number_beyond_63_bits_is_reported():
    high = hex(2**63)
    too_large = "block number larger than int64"
    assert fault(encoding.block_number, high) == too_large
    assert fault(encoding.block_number_or_hash, high) == "blocknumber too high"


@pytest.mark.parametrize("value", [5, None, True, [], {}])
def test_block_number_that_is_no_string_lacks_the_prefix(value):
    assert fault(encoding.block_number, value) == "hex string without 0x prefix"


def test_block_is_named_by_its_hash():
    expected = BlockReference(hash=b"\xab" * 32)
    assert encoding.block_number_or_hash(WORD) == expected
    assert encoding.block_number_or_hash("0X" + WORD[2:].upper()) == expected
    bad = "0x" + "zz" * 32
    assert fault(encoding.block_number_or_hash, bad) == "invalid hex string"
    without = "ab" * 33
    assert fault(encoding.block_number_or_hash, without) == (
        "hex string without 0x prefix"
    )


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ({"blockNumber": "0x5"}, BlockReference(number=5)),
        ({"blockNumber": "earliest"}, BlockReference(tag="earliest")),
        ({"blockNumber": "0x5", "requireCanonical": True}, BlockReference(number=5)),
        ({"blockHash": WORD}, BlockReference(hash=b"\xab" * 32)),
        ({"blockHash": WORD, "blockNumber": None}, BlockReference(hash=b"\xab" * 32)),
        (
            {"blockHash": WORD, "requireCanonical": True, "more": 1},
            BlockReference(hash=b"\xab" * 32, require_canonical=True),
        ),
    ],
)
def test_block_object_names_a_block(members, expected):
    assert encoding.block_number_or_hash(members) == expected


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({}, "must specify either BlockHash or BlockNumber"),
        (
            {"blockHash": WORD, "blockNumber": "0x1"},
            "cannot specify both BlockHash and BlockNumber, choose one or the other",
        ),
        ({"blockNumber": 5}, mismatch("object", "string")),
        ({"blockHash": "0x12"}, mismatch("object", "string")),
        ({"blockHash": WORD, "requireCanonical": 1}, mismatch("object", "string")),
        (5, mismatch("number", "string")),
        (True, mismatch("bool", "string")),
        ([], mismatch("array", "string")),
    ],
)
def test_block_object_has_an_error_text(value, words):
    assert fault(encoding.block_number_or_hash, value) == words


@given(st.integers(min_value=0, max_value=2**256 - 1))
def test_storage_key_may_be_short_long_or_bare(slot):
    assert encoding.storage_key(hex(slot)) == slot
    assert encoding.storage_key(f"{slot:x}") == slot
    assert encoding.storage_key(f"0X{slot:064X}") == slot


def test_empty_storage_key_is_slot_0():
    assert encoding.storage_key("") == encoding.storage_key("0x") == 0


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("0x" + "0" * 65, 'storage key too long (want at most 32 bytes): "0x{0}"'),
        ("0xasdf", 'invalid hex in storage key: "0xasdf"'),
        ("latest", 'invalid hex in storage key: "latest"'),
        ("0x0x1", 'invalid hex in storage key: "0x0x1"'),
        (" 1", 'invalid hex in storage key: " 1"'),
        ("1_0", 'invalid hex in storage key: "1_0"'),
        ('"', 'invalid hex in storage key: "\\""'),
        ("é", 'invalid hex in storage key: "é"'),
        ("\n", 'invalid hex in storage key: "\\n"'),
    ],
)
def test_storage_key_has_an_error_text(key, words):
    assert fault(encoding.storage_key, key) == words.replace("{0}", "0" * 65)


def test_slots_stand_under_their_addresses():
    account = "0x" + "11" * 20
    found = encoding.slots_by_address(
        {account: [WORD, "0x" + "00" * 32], WORD[:42]: []}
    )
    assert found == {
        b"\x11" * 20: [int(WORD, 16), 0],
        b"\xab" * 20: [],
    }
    assert encoding.slots_by_address({account: None}) == {b"\x11" * 20: []}


def test_slots_have_an_error_text():
    account = "0x" + "11" * 20
    decoder = encoding.slots_by_address
    by_address = "map[common.Address][]common.Hash"
    assert fault(decoder, []) == mismatch("array", by_address)
    assert fault(decoder, {account: WORD}) == mismatch("string", "[]common.Hash")
    assert fault(decoder, {"0x12": []}) == (
        "hex string has length 2, want 40 for common.Address"
    )
    assert fault(decoder, {account: ["0x1"]}) == mismatch(
        "hex string of odd length", "common.Hash"
    )


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)
HEX = st.from_regex(r"0[xX]?[0-9a-fA-Fz]{0,70}", fullmatch=True)


@pytest.mark.parametrize(
    "decoder",
    [
        encoding.hash32,
        encoding.address,
        encoding.any_data,
        encoding.boolean,
        encoding.text,
        encoding.index,
        encoding.block_number,
        encoding.block_number_or_hash,
        encoding.slots_by_address,
        lambda value: encoding.storage_key(encoding.text(value)),
    ],
)
@given(value=JSON | HEX)
def test_whatever_is_sent_is_decoded_or_refused_in_words(decoder, value):
    try:
        decoder(value)
    except ValueError as error:
        assert str(error)


def test_quoted_texts_are_escaped_as_in_go():
    given = 'é"\\\n\x01\x7f\xad\U000e0001\ud800'
    assert encoding.quoted(given) == (
        '"é\\"\\\\\\n\\x01\\x7f\\u00ad\\U000e0001\\ufffd"'
    )
