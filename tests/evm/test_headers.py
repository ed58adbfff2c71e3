import dataclasses

import pytest

from evm import rlp
from evm.headers import (
    EMPTY_TRIE_ROOT,
    EMPTY_UNCLES_HASH,
    ZERO_HASH,
    Header,
    decode_header,
)
from evm.rlp import RlpError
from evm.signatures import keccak

HEADER = Header(
    parent_hash=b"\x01" * 32,
    uncles_hash=EMPTY_UNCLES_HASH,
    coinbase=b"\x02" * 20,
    state_root=b"\x03" * 32,
    transactions_root=EMPTY_TRIE_ROOT,
    receipts_root=EMPTY_TRIE_ROOT,
    logs_bloom=bytes(256),
    difficulty=0,
    number=7,
    gas_limit=30_000_000,
    gas_used=0,
    timestamp=12,
    extra_data=b"",
    mix_hash=ZERO_HASH,
    nonce=bytes(8),
)
LONDON = dataclasses.replace(HEADER, base_fee_per_gas=0)
SHANGHAI = dataclasses.replace(LONDON, withdrawals_root=EMPTY_TRIE_ROOT)
CANCUN = dataclasses.replace(
    SHANGHAI, blob_gas_used=0, excess_blob_gas=0, parent_beacon_root=ZERO_HASH
)
PRAGUE = dataclasses.replace(CANCUN, requests_hash=b"\x04" * 32)
AMSTERDAM = dataclasses.replace(
    PRAGUE, block_access_list_hash=EMPTY_UNCLES_HASH, slot_number=9
)


def test_constants_are_the_hashes_of_nothing():
    assert keccak(rlp.encode([])) == EMPTY_UNCLES_HASH
    assert keccak(rlp.encode(b"")) == EMPTY_TRIE_ROOT


@pytest.mark.parametrize(
    "header", [HEADER, LONDON, SHANGHAI, CANCUN, PRAGUE, AMSTERDAM]
)
def test_header_of_each_fork_survives_its_encoding(header):
    decoded = decode_header(header.encode())
    assert decoded == header
    assert decoded.hash == keccak(header.encode())


def test_every_field_changes_the_hash():
    hashes = {AMSTERDAM.hash}
    for field in dataclasses.fields(AMSTERDAM):
        if field.name == "hash":
            continue
        value = getattr(AMSTERDAM, field.name)
        other = value + 1 if isinstance(value, int) else b"\xff" + value[1:]
        hashes.add(dataclasses.replace(AMSTERDAM, **{field.name: other}).hash)
    assert len(hashes) == 1 + 23


def test_later_field_without_an_earlier_one_is_an_error():
    with pytest.raises(ValueError, match="without an earlier one"):
        dataclasses.replace(HEADER, withdrawals_root=EMPTY_TRIE_ROOT)


@pytest.mark.parametrize("count", [0, 14, 24])
def test_other_numbers_of_fields_are_refused(count):
    items = [*AMSTERDAM.items(), b""][:count]
    with pytest.raises(RlpError, match="a list of 15 to 23 fields"):
        decode_header(rlp.encode(items))


@pytest.mark.parametrize(
    ("place", "item"),
    [
        (0, b"\x01" * 31),
        (2, b"\x01" * 21),
        (6, bytes(255)),
        (7, b"\x00\x01"),
        (8, b"\x01" * 9),
        (11, []),
        (12, [b"extra"]),
        (14, bytes(7)),
        (15, b"\x00"),
        (16, b""),
        (20, b"\x01"),
        (21, b"\x01"),
        (22, b"\x01" * 9),
    ],
)
def test_fields_of_another_form_are_refused(place, item):
    items = AMSTERDAM.items()
    items[place] = item
    with pytest.raises(RlpError):
        decode_header(rlp.encode(items))
