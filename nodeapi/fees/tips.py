"""Tips: what the transactions of a block paid to its miner, in wei per gas.

A transaction's effective tip is the price that it paid minus the block's base fee. The
tips of a block are computed once from its stored transactions and receipts, and packed.

Source: go-ethereum eth/gasprice
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice

from nodeapi.documents.receipts import receipt_gas_used

SAMPLES = 3
"""Transactions of a block whose tips are samples for a suggested tip."""

MIN_SAMPLE = 2
"""Least tip of a sample, in wei per gas."""

_TRANSACTION = re.compile(
    rb'"from":"0x(?P<sender>\w{40})".*?,"gasPrice":"0x(?P<price>\w+)"'
)
"""Members of `nodeapi.documents.blocks.transaction_document`. They precede the input."""

_WORD = 32
_GAS = 8


@dataclass(frozen=True, slots=True)
class BlockTips:
    """The tips of a block's transactions.

    samples: the lowest tips, at most SAMPLES, without those below MIN_SAMPLE and those
        of transactions that the miner has sent.
    cumulative_gas: for each transaction, in ascending order of tips, the gas used by it
        and all before it.
    tips: in the same order, words of 32 bytes.
    """

    samples: tuple[int, ...]
    cumulative_gas: Sequence[int]
    tips: bytes

    def reward(self, gas_used: int, percentile: float) -> int:
        """Return the tip at a percentile of the block's gas, 0 without transactions.

        gas_used: gas of the whole block. The threshold is computed with floats, like geth's.
        """
        if not self.cumulative_gas:
            return 0
        threshold = int(gas_used * percentile / 100)
        found = bisect_left(self.cumulative_gas, threshold)
        index = min(found, len(self.cumulative_gas) - 1)
        return int.from_bytes(self.tips[_WORD * index : _WORD * (index + 1)])

    def pack(self) -> bytes:
        """Return the tips as bytes, for a cache in the same process."""
        gas = array("Q", self.cumulative_gas).tobytes()
        samples = b"".join(tip.to_bytes(_WORD) for tip in self.samples)
        return bytes([len(self.samples)]) + samples + gas + self.tips


def unpack_tips(packed: bytes) -> BlockTips:
    """Return the tips from a result of `BlockTips.pack`."""
    start = 1 + _WORD * packed[0]
    count = (len(packed) - start) // (_GAS + _WORD)
    gas = array("Q", packed[start : start + _GAS * count])
    samples = tuple(
        int.from_bytes(packed[at : at + _WORD]) for at in range(1, start, _WORD)
    )
    return BlockTips(samples, gas, packed[start + _GAS * count :])


def block_tips(
    transactions: Iterable[tuple[bytes, bytes]], base_fee: int, miner: bytes
) -> BlockTips:
    """Compute the tips of a block.

    transactions: packed receipts, each with the transaction object as JSON, or with the
        first `nodeapi.documents.receipts.HEAD_BYTES` bytes of it.
    base_fee: of the block, 0 before London.

    Raises: ValueError for malformed data.
    """
    paid = sorted(
        (_payment(receipt, head, base_fee) for receipt, head in transactions),
        key=lambda payment: payment[0],
    )
    samples = (tip for tip, _, sender in paid if tip >= MIN_SAMPLE and sender != miner)
    return BlockTips(
        tuple(islice(samples, SAMPLES)),
        list(accumulate(gas for _, gas, _ in paid)),
        b"".join(tip.to_bytes(_WORD) for tip, _, _ in paid),
    )


def _payment(receipt: bytes, head: bytes, base_fee: int) -> tuple[int, int, bytes]:
    """Return a transaction's tip, gas used and sender."""
    found = _TRANSACTION.search(head)
    if found is None:
        raise ValueError("this is no transaction object of a block")
    tip = int(found["price"], 16) - base_fee
    sender = bytes.fromhex(found["sender"].decode())
    return tip, receipt_gas_used(receipt), sender
