"""Parity's format of flat traces: one list for all transactions, then the rewards.

The entries are flatCallTracer's. They are cut out of its result for a block,
`[{"txHash":"0x…","result":[…]},…]`, without parsing the JSON.

Source: https://openethereum.github.io/JSONRPC-trace-module
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing

from evm.rewards import MiningReward
from jsonrpc.stream import Stream
from nodeapi.encoding import data, quantity

_HEAD = rb'\{"txHash":"0x[0-9a-f]{64}","result":\['
_HEAD_BYTES = len('{"txHash":"0x","result":[') + 64
_TAIL_BYTES = len("]}")

# Neither can be inside a string, where quotes are escaped.
_FIRST_HEAD = re.compile(rb"^\[" + _HEAD)
_BETWEEN = re.compile(rb"\]\}," + _HEAD)
_BETWEEN_BYTES = _TAIL_BYTES + 1 + _HEAD_BYTES


def reward_traces(
    rewards: Iterable[MiningReward], block_hash: bytes, block_number: int
) -> bytes:
    """Return the entries of rewards, separated by commas."""
    entries = [
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
        for reward in rewards
    ]
    return b",".join(entries)


def flat_list(answer: bytes, behind: bytes) -> bytes:
    """Return the entries of a block's result, followed by others, as one list."""
    if answer == b"[]":
        return b"[" + behind + b"]"
    answer = _BETWEEN.sub(b",", _FIRST_HEAD.sub(b"[", answer))
    return answer[: -_TAIL_BYTES - 1] + _end(behind)


def flat_stream(answer: Stream, transactions: int, behind: bytes) -> Stream:
    """Return the same as `flat_list` for a result that is a stream.

    transactions: number of transactions in the result, at least one.
    """
    wrapping = transactions * (_HEAD_BYTES + _TAIL_BYTES)
    size = answer.size - wrapping + len(_end(behind)) - 1
    return Stream(size, _unwrapped(answer, behind), answer.advice)


async def _unwrapped(answer: Stream, behind: bytes) -> AsyncGenerator[bytes, None]:
    """Yield a list's bytes.

    Bytes that may begin a boundary are kept for the next chunk.
    """
    async with aclosing(answer):
        held = b""
        async for part in answer:
            # A stream's first part is longer than the head.
            held = held + part if held else _FIRST_HEAD.sub(b"[", part)
            held = _BETWEEN.sub(b",", held)
            yield held[:-_BETWEEN_BYTES]
            held = held[-_BETWEEN_BYTES:]
        yield held[: -_TAIL_BYTES - 1] + _end(behind)


def _end(behind: bytes) -> bytes:
    return b"," + behind + b"]" if behind else b"]"
