"""Parts of trace results: the entries of a block's list, and mining rewards.

A block's list has one entry for each transaction, in order.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count

from evm.rewards import MiningReward
from nodeapi.encoding import data, quantity

_BEFORE_HASH = b'{"txHash":"0x'
_AFTER_HASH = b'","result":'

_ENTRY_BYTES = len(_BEFORE_HASH) + 64 + len(_AFTER_HASH) + 1


def entry_start(transaction_hash: bytes) -> bytes:
    """Return the JSON of an entry before the transaction's result."""
    return b"%s%s%s" % (_BEFORE_HASH, transaction_hash.hex().encode(), _AFTER_HASH)


def entry(transaction_hash: bytes, result: bytes) -> bytes:
    """Return a transaction's entry as JSON. result: JSON."""
    return b"%s%s}" % (entry_start(transaction_hash), result)


def of_many(hashes: bytes, results: Iterable[bytes]) -> list[bytes]:
    """Return the entries of several transactions. hashes: concatenated."""
    digits = hashes.hex().encode()
    return [
        b"%s%s%s%s}" % (_BEFORE_HASH, digits[at : at + 64], _AFTER_HASH, result)
        for at, result in zip(count(0, 64), results, strict=False)
    ]


def array(entries: Iterable[bytes]) -> bytes:
    """Return the JSON array of these entries."""
    return b"[" + b",".join(entries) + b"]"


def array_size(length: int, results_size: int) -> int:
    """Return the size in bytes of an answer with `length` entries.

    results_size: total bytes of the results.
    """
    commas = max(length - 1, 0)
    return 2 + commas + length * _ENTRY_BYTES + results_size


def reward_trace(reward: MiningReward, block_hash: bytes, block_number: int) -> bytes:
    """Return a mining reward as JSON, in Parity's format of flat traces.

    Source: https://openethereum.github.io/JSONRPC-trace-module
    """
    return (
        b'{"action":{"author":%b,"rewardType":"%b","value":%b},"blockHash":%b,'
        b'"blockNumber":%d,"result":null,"subtraces":0,"traceAddress":[],'
        b'"transactionHash":null,"transactionPosition":null,"type":"reward"}'
        % (
            data(reward.author),
            b"uncle" if reward.is_uncle else b"block",
            quantity(reward.value),
            data(block_hash),
            block_number,
        )
    )
