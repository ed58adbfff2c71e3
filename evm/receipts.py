"""Receipts and the bloom filters over their logs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import sha3

from evm import rlp

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from eth_typing import Address, Hash32

BLOOM_BYTES = 256


class Log(NamedTuple):
    """A log entry of LOG0 … LOG4."""

    address: Address
    topics: tuple[bytes, ...]
    """Up to four words of 32 bytes."""
    data: bytes


@dataclass(frozen=True, slots=True)
class Receipt:
    """A transaction's receipt, as the receipts trie contains it."""

    type: int
    status: int | None
    """1 success, 0 failure (EIP-658); None before Byzantium."""
    state_root: Hash32 | None
    """The state after the transaction, before Byzantium."""
    cumulative_gas_used: int
    """Gas of this and all earlier transactions of the block."""
    gas_used: int
    """Gas used by this transaction alone."""
    bloom: int
    """The logs' filter as a number of 2048 bits."""
    logs: Sequence[Log]

    def encode(self) -> bytes:
        """Return the receipt as it enters the receipts trie (EIP-2718)."""
        if self.state_root is not None:
            outcome: bytes = self.state_root
        else:
            outcome = b"\x01" if self.status else b""
        payload = rlp.encode(
            [
                outcome,
                rlp.encode_int(self.cumulative_gas_used),
                self.bloom.to_bytes(BLOOM_BYTES, "big"),
                [[log.address, list(log.topics), log.data] for log in self.logs],
            ]
        )
        return bytes([self.type]) + payload if self.type else payload


@lru_cache(maxsize=16_384)
def bloom_bits(item: bytes) -> int:
    """Return the three bits that an address or topic sets (yellow paper, 4.3.1)."""
    digest = sha3.keccak_256(item).digest()
    bits = 0
    for i in (0, 2, 4):
        bits |= 1 << (((digest[i] << 8) | digest[i + 1]) & 2047)
    return bits


def logs_bloom(logs: Iterable[Log]) -> int:
    """Return the bloom filter over logs as a number of 2048 bits."""
    bloom = 0
    for log in logs:
        bloom |= bloom_bits(log.address)
        for topic in log.topics:
            bloom |= bloom_bits(topic)
    return bloom
