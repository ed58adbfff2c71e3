"""Block headers of every fork through Amsterdam."""

from __future__ import annotations

from dataclasses import dataclass, field

from eth_typing import Address, Hash32
from sha3 import keccak_256

from evm import rlp
from evm.rlp import Decoded, RlpError, decode_bytes, decode_int, decode_string

EMPTY_UNCLES_HASH = Hash32(
    bytes.fromhex("1dcc4de8dec75d7aab85b567b6ccd41ad312451b948a7413f0a142fd40d49347")
)
"""keccak of the RLP of an empty list."""

EMPTY_TRIE_ROOT = Hash32(
    bytes.fromhex("56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421")
)
"""keccak of the RLP of an empty string."""

ZERO_HASH = Hash32(bytes(32))
ZERO_NONCE = bytes(8)


@dataclass(frozen=True, slots=True)
class Header:
    """A block header.

    Fields that a fork has introduced are None before it. A field may only be None if
    all later fields are None as well. Raises: ValueError otherwise.
    """

    parent_hash: Hash32
    uncles_hash: Hash32
    coinbase: Address
    """The account that gets the fees and, before the merge, the block reward."""
    state_root: Hash32
    transactions_root: Hash32
    receipts_root: Hash32
    logs_bloom: bytes
    """256 bytes."""
    difficulty: int
    number: int
    gas_limit: int
    gas_used: int
    timestamp: int
    """Unix seconds."""
    extra_data: bytes
    mix_hash: Hash32
    """Proof of work; PREVRANDAO after the merge."""
    nonce: bytes
    """8 bytes of the proof of work."""
    base_fee_per_gas: int | None = None
    """Wei; from London on."""
    withdrawals_root: Hash32 | None = None
    """From Shanghai on."""
    blob_gas_used: int | None = None
    """From Cancun on."""
    excess_blob_gas: int | None = None
    """From Cancun on."""
    parent_beacon_root: Hash32 | None = None
    """From Cancun on."""
    requests_hash: Hash32 | None = None
    """From Prague on."""
    block_access_list_hash: Hash32 | None = None
    """Keccak-256 of the block's access list (EIP-7928); from Amsterdam on."""
    slot_number: int | None = None
    """The beacon chain's slot (EIP-7843); from Amsterdam on."""
    hash: Hash32 = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "hash", Hash32(keccak_256(self.encode()).digest()))

    def items(self) -> list[bytes]:
        """Return the fields as RLP items."""
        items = [
            self.parent_hash,
            self.uncles_hash,
            self.coinbase,
            self.state_root,
            self.transactions_root,
            self.receipts_root,
            self.logs_bloom,
            rlp.encode_int(self.difficulty),
            rlp.encode_int(self.number),
            rlp.encode_int(self.gas_limit),
            rlp.encode_int(self.gas_used),
            rlp.encode_int(self.timestamp),
            self.extra_data,
            self.mix_hash,
            self.nonce,
        ]
        tail = [
            self.base_fee_per_gas,
            self.withdrawals_root,
            self.blob_gas_used,
            self.excess_blob_gas,
            self.parent_beacon_root,
            self.requests_hash,
            self.block_access_list_hash,
            self.slot_number,
        ]
        while tail and tail[-1] is None:
            tail.pop()
        for value in tail:
            if value is None:
                raise ValueError("a header field is there without an earlier one")
            items.append(value if isinstance(value, bytes) else rlp.encode_int(value))
        return items

    def encode(self) -> bytes:
        """Return the header's RLP."""
        return rlp.encode(self.items())


_FIELD_COUNTS = range(15, 24)
"""Numbers of fields: 15 of all forks, and those that London to Amsterdam have added. Which
of these a header must have is a rule of its fork (`evm.header_rules`)."""


def decode_header(raw: bytes) -> Header:
    """Decode a header from RLP.

    Raises: RlpError if it is not exactly one header of a fork through Amsterdam.
    """
    return header_from_items(rlp.decode(raw))


def header_from_items(items: Decoded) -> Header:
    """Return a header from a decoded RLP list. Raises: RlpError if it is malformed."""
    if not isinstance(items, list) or len(items) not in _FIELD_COUNTS:
        raise RlpError("a header must be a list of 15 to 23 fields")
    tail = [*items[15:], *[None] * (23 - len(items))]
    return Header(
        parent_hash=Hash32(decode_bytes(items[0], 32)),
        uncles_hash=Hash32(decode_bytes(items[1], 32)),
        coinbase=Address(decode_bytes(items[2], 20)),
        state_root=Hash32(decode_bytes(items[3], 32)),
        transactions_root=Hash32(decode_bytes(items[4], 32)),
        receipts_root=Hash32(decode_bytes(items[5], 32)),
        logs_bloom=decode_bytes(items[6], 256),
        difficulty=decode_int(items[7]),
        number=decode_int(items[8], 8),
        gas_limit=decode_int(items[9], 8),
        gas_used=decode_int(items[10], 8),
        timestamp=decode_int(items[11], 8),
        extra_data=decode_string(items[12]),
        mix_hash=Hash32(decode_bytes(items[13], 32)),
        nonce=decode_bytes(items[14], 8),
        base_fee_per_gas=_optional_int(tail[0], 32),
        withdrawals_root=_optional_hash(tail[1]),
        blob_gas_used=_optional_int(tail[2], 8),
        excess_blob_gas=_optional_int(tail[3], 8),
        parent_beacon_root=_optional_hash(tail[4]),
        requests_hash=_optional_hash(tail[5]),
        block_access_list_hash=_optional_hash(tail[6]),
        slot_number=_optional_int(tail[7], 8),
    )


def _optional_int(item: Decoded | None, size: int) -> int | None:
    return None if item is None else decode_int(item, size)


def _optional_hash(item: Decoded | None) -> Hash32 | None:
    return None if item is None else Hash32(decode_bytes(item, 32))
