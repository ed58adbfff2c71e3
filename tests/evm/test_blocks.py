from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evm import rlp
from evm.blocks import (
    Block,
    Withdrawal,
    decode_block,
    decode_body,
    encode_block,
    encode_body,
    without_access_list,
)
from evm.errors import InvalidBlock
from evm.rlp import RlpError
from evm.signatures import keccak
from evm.signing import sign_transaction
from tests.evm.test_headers import AMSTERDAM, HEADER, SHANGHAI
from tests.evm.test_transactions import FIELDS, KEY
from tests.support import execution_apis

WITHDRAWAL = Withdrawal(5, 6, b"\x07" * 20, 8)
TRANSACTIONS = tuple(sign_transaction(fields, KEY) for fields in FIELDS.values())
BLOCK = Block(SHANGHAI, TRANSACTIONS, (HEADER,), (WITHDRAWAL,))


def parts(block):
    return rlp.decode(encode_block(block))


@pytest.mark.parametrize(
    "block",
    [BLOCK, Block(HEADER), Block(HEADER, TRANSACTIONS), Block(SHANGHAI, (), (), ())],
)
def test_block_survives_its_encoding(block):
    raw = encode_block(block)
    for decoded in (
        decode_block(raw),
        decode_body(block.header, encode_body(block)),
    ):
        assert decoded.header == block.header
        assert [t.raw for t in decoded.transactions] == [
            t.raw for t in block.transactions
        ]
        assert decoded.uncles == block.uncles
        assert decoded.withdrawals == block.withdrawals
        assert encode_block(decoded) == raw
        assert decoded.size == len(raw)


@pytest.mark.parametrize(
    ("place", "item", "reason"),
    [
        (0, [b""], "^header: a header must be a list"),
        (0, b"", "^header: a header must be a list"),
        (1, b"", "expected a list, found a string"),
        (1, [b"\x05\xc0"], "^transaction 0: transaction type 5"),
        (1, [TRANSACTIONS[3].raw, b"\x02\xc0"], "^transaction 1: "),
        (1, [TRANSACTIONS[0].raw], "^transaction 0: a legacy transaction inside"),
        (1, [b""], "^transaction 0: an empty transaction"),
        (1, [[]], "^transaction 0: a transaction of this type is a list of 9"),
        (2, b"", "^uncles: "),
        (2, [[]], "a header must be a list"),
        (3, b"", "^withdrawals: "),
        (3, [[b""]], "list of 4 fields"),
        (3, [[b"\x00", b"", b"\x01" * 20, b""]], "leading zeros"),
        (3, [[b"", b"", b"\x01" * 19, b""]], "expected 20 bytes, found 19"),
        (3, [[b"", b"", b"\x01" * 20, b"\x01" * 9]], "at most 8"),
    ],
)
def test_malformed_part_is_refused_by_name(place, item, reason):
    items = parts(BLOCK)
    items[place] = item
    with pytest.raises(RlpError, match=reason):
        decode_block(rlp.encode(items))


def test_blocks_have_three_or_four_parts():
    items = parts(BLOCK)
    for count in (0, 2, 5):
        with pytest.raises(RlpError, match="3 or 4 parts"):
            decode_block(rlp.encode([*items, []][:count]))
    with pytest.raises(RlpError, match="2 or 3 parts"):
        decode_body(HEADER, rlp.encode([[]]))
    with pytest.raises(RlpError):
        decode_block(encode_block(BLOCK)[:-1])


def exported(header, access_list):
    """Return a block with its access list, and without it."""
    raw = encode_block(Block(header, TRANSACTIONS, (), ()))
    whole = rlp.encode([*rlp.decode(raw), access_list])
    return whole, raw


def test_access_list_of_an_exported_block_is_compared_and_left_out():
    access_list = [[b"\x01" * 20, [], [b"\x07"], [], [], []]]
    list_hash = keccak(rlp.encode(access_list))
    header = replace(AMSTERDAM, block_access_list_hash=list_hash)
    whole, raw = exported(header, access_list)
    assert without_access_list(whole) == raw
    assert without_access_list(raw) == raw
    with pytest.raises(InvalidBlock) as caught:
        without_access_list(exported(AMSTERDAM, access_list)[0])
    assert str(caught.value) == (
        f"block 7 (0x{AMSTERDAM.hash.hex()}): block access list hash: access list hash "
        f"mismatch, computed: {list_hash.hex()}, "
        f"remote: {AMSTERDAM.block_access_list_hash.hex()}"
    )
    with pytest.raises(InvalidBlock, match="block had access list before Amsterdam"):
        without_access_list(exported(SHANGHAI, access_list)[0])


@given(st.data())
def test_damaged_block_is_refused_or_is_another_block(data):
    raw = bytearray(encode_block(BLOCK))
    for _ in range(data.draw(st.integers(1, 3))):
        # Most bytes belong to the header, but the lists after it have more cases.
        place = data.draw(st.integers(540, len(raw) - 1) | st.integers(0, len(raw) - 1))
        raw[place] = data.draw(st.integers(0, 255))
    try:
        block = decode_block(bytes(raw))
    except RlpError:
        return
    assert encode_block(block) == raw


def test_blocks_of_all_forks_are_read_and_written_byte_for_byte():
    raws = execution_apis.raw_blocks()
    blocks = [decode_block(raw) for raw in raws]
    assert len(blocks) == 54
    assert [encode_block(block) for block in blocks] == raws
    assert [block.size for block in blocks] == [len(raw) for raw in raws]
    for parent, block in pairwise(blocks):
        assert block.header.parent_hash == parent.header.hash
    assert blocks[-1].header.hash.hex() == (
        "d226371d0b1551adb03fb52b71f08e3e11247fe9b1af994768af8cdaa8e7dcd7"
    )
    kinds = [t.type for block in blocks for t in block.transactions]
    assert [kinds.count(kind) for kind in range(5)] == [196, 23, 23, 6, 1]


def test_senders_of_all_forks_are_recovered():
    genesis = execution_apis.genesis()
    funded = {bytes.fromhex(address) for address in genesis["alloc"]}
    nonces = {}
    for block in execution_apis.blocks():
        for transaction in block.transactions:
            # With a wrong key, the sender would have no ether and another nonce.
            assert transaction.sender in funded
            assert transaction.nonce == nonces.get(transaction.sender, 0)
            nonces[transaction.sender] = transaction.nonce + 1
