"""Parity's format of a block's traces: one list for all transactions.

Flat traces are flatCallTracer's entries, then the rewards. Replays have one result for
each transaction. Both are cut out of a tracer's result for a block,
`[{"txHash":"0x…","result":…},…]`, without parsing the JSON.

Source: https://openethereum.github.io/JSONRPC-trace-module
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from typing import NamedTuple

from evm.rewards import MiningReward
from jsonrpc.stream import Stream
from nodeapi.results.entries import reward_trace


class _Entries(NamedTuple):
    """The text around the results in a block's answer.

    Neither pattern can match inside a string, where quotes are escaped.
    """

    first: re.Pattern[bytes]
    """Matches the text before the first result."""
    between: re.Pattern[bytes]
    """Matches the text between two results."""
    head_bytes: int
    tail_bytes: int
    """Lengths of the text before and after each result."""


def _entries(opening: bytes, closing: bytes) -> _Entries:
    """Return the text around results. opening, closing: parts of them to be removed."""
    head = rb'\{"txHash":"0x[0-9a-f]{64}","result":' + re.escape(opening)
    return _Entries(
        re.compile(rb"^\[" + head),
        re.compile(re.escape(closing) + rb"\}," + head),
        len('{"txHash":"0x","result":') + 64 + len(opening),
        len(closing) + 1,
    )


_LISTS = _entries(b"[", b"]")
_RESULTS = _entries(b"", b"")


def reward_traces(
    rewards: Iterable[MiningReward], block_hash: bytes, block_number: int
) -> bytes:
    """Return the entries of rewards, separated by commas."""
    return b",".join(
        [reward_trace(reward, block_hash, block_number) for reward in rewards]
    )


def flat_list(answer: bytes, behind: bytes) -> bytes:
    """Return the entries of a block's result, followed by others, as one list."""
    if answer == b"[]":
        return b"[" + behind + b"]"
    return _unwrap(answer, _LISTS, _end(behind))


def flat_stream(answer: Stream, transactions: int, behind: bytes) -> Stream:
    """Return the same as `flat_list` for a result that is a stream.

    transactions: number of transactions in the result, at least one.
    """
    return _unwrap_stream(answer, transactions, _LISTS, _end(behind))


def result_list(answer: bytes) -> bytes:
    """Return the results of a block's transactions as a list, without their hashes."""
    return answer if answer == b"[]" else _unwrap(answer, _RESULTS, b"]")


def result_stream(answer: Stream, transactions: int) -> Stream:
    """Return the same as `result_list` for a result that is a stream.

    transactions: number of transactions in the result.
    """
    if not transactions:
        return answer
    return _unwrap_stream(answer, transactions, _RESULTS, b"]")


def _unwrap(answer: bytes, entries: _Entries, end: bytes) -> bytes:
    answer = entries.between.sub(b",", entries.first.sub(b"[", answer))
    return answer[: -entries.tail_bytes - 1] + end


def _unwrap_stream(
    answer: Stream, transactions: int, entries: _Entries, end: bytes
) -> Stream:
    wrapping = transactions * (entries.head_bytes + entries.tail_bytes)
    size = answer.size - wrapping + len(end) - 1
    return Stream(size, _unwrapped(answer, entries, end), answer.advice)


async def _unwrapped(
    answer: Stream, entries: _Entries, end: bytes
) -> AsyncGenerator[bytes, None]:
    """Yield a list's bytes.

    Bytes that may begin a boundary are kept for the next chunk.
    """
    kept = entries.tail_bytes + 1 + entries.head_bytes
    async with aclosing(answer):
        held = b""
        async for part in answer:
            # A stream's first part is longer than the head.
            held = held + part if held else entries.first.sub(b"[", part)
            held = entries.between.sub(b",", held)
            yield held[:-kept]
            held = held[-kept:]
        yield held[: -entries.tail_bytes - 1] + end


def _end(behind: bytes) -> bytes:
    return b"," + behind + b"]" if behind else b"]"
