"""`trace_get`: one of a transaction's flat traces.

Sources: reth crates/rpc/rpc/src/trace.rs. As in reth, index 0 is the first trace; in
Erigon, it is the second one.
"""

from __future__ import annotations

import re
from contextlib import aclosing
from typing import Any

from evm.tracers.native import FLAT_CALL, NativeTracer
from jsonrpc.params import Param
from jsonrpc.stream import Stream
from jsonrpc.text import kind
from nodeapi.encoding import MAX_INDEX, hash32
from nodeapi.errors.traces import TransactionNotFound
from nodeapi.go.decoding import mismatch
from nodeapi.methods import traces
from nodeapi.methods.catalog import registry
from nodeapi.methods.context import TRACE, Context
from nodeapi.methods.numbers import number
from nodeapi.methods.trace_options import TraceOptions
from nodeapi.results.answers import Answer
from nodeapi.schemas.building import named
from nodeapi.schemas.parity import FLAT_TRACE_OR_NULL
from nodeapi.schemas.values import HASH32, INDICES

_OPTIONS = TraceOptions(NativeTracer(FLAT_CALL, frozenset({"convertParityErrors"})))

_BETWEEN = re.compile(rb'\},(?=\{"action":)')
"""Matches the end of an entry before another one. Strings contain no bare quotes."""
_BOUNDARY_BYTES = len('},{"action":')


def _indices(value: Any) -> list[int]:
    """Decode a list of numbers."""
    if type(value) is not list:
        raise ValueError(mismatch(kind(value), "[]hexutil.Uint64"))
    return list(map(number, value))


@registry.method(
    "trace_get",
    params=[
        Param("transactionHash", hash32, HASH32),
        Param(
            "indices",
            _indices,
            INDICES,
            summary="A list with one index, which begins at 0.",
        ),
    ],
    result=named("trace", FLAT_TRACE_OR_NULL),
    summary="Returns one of the calls that trace_transaction lists, null when there is "
    "none.",
    credits=10,
    capability=TRACE,
    is_slow=True,
)
async def trace_get(
    context: Context, transaction_hash: bytes, indices: list[int]
) -> bytes | None:
    """Return the flat trace at an index of a transaction's traces.

    None if there is no such trace, or if `indices` has not exactly one element.
    """
    if len(indices) != 1:
        return None
    try:
        answer = await traces.trace_transaction(context, transaction_hash, _OPTIONS)
    except TransactionNotFound:
        return None
    return await entry_at(answer, indices[0])


async def entry_at(answer: Answer, index: int) -> bytes | None:
    """Return an entry of a list of flat traces, None if the list is shorter.

    answer: a stream is read up to the entry, and closed.
    """
    if index > MAX_INDEX:
        return None
    if not isinstance(answer, Stream):
        entries = _BETWEEN.split(answer[1:-1], index + 1)
        if index >= len(entries):
            return None
        return entries[index] + b"}" if index + 1 < len(entries) else entries[index]
    found, rest = 0, b""
    async with aclosing(answer):
        async for part in answer:
            start = max(len(rest) - _BOUNDARY_BYTES, 0)
            rest += part
            while (end := _BETWEEN.search(rest, start)) is not None:
                if found == index:
                    return rest[: end.start() + 1].removeprefix(b"[")
                found += 1
                rest, start = rest[end.end() :], 0
            if found < index:
                rest = rest[-_BOUNDARY_BYTES:]
    return rest[:-1].removeprefix(b"[") if found == index else None
