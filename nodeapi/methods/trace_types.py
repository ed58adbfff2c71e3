"""Trace types: which members a result in Parity's format has."""

from __future__ import annotations

from typing import Any

from evm.tracers.native import PARITY_REPLAY, NativeTracer
from jsonrpc.errors import RpcError
from jsonrpc.params import Param
from jsonrpc.text import kind
from nodeapi.go.decoding import mismatch
from nodeapi.methods.trace_options import PARITY_TRACERS, TraceOptions
from nodeapi.schemas import parity
from nodeapi.tracing.jobs import VmTracing

VM_TRACE = "vmTrace"


class UnknownTraceType(RpcError):
    """Raised when a trace type is neither trace, vmTrace nor stateDiff."""

    form = "unrecognized trace type: <type>"
    remedy = "Use the types trace, vmTrace and stateDiff."

    def __init__(self, name: str) -> None:
        super().__init__(f"unrecognized trace type: {name}")


def trace_types(value: Any) -> frozenset[str]:
    """Decode a list of trace types. null is an empty list."""
    if value is None:
        return frozenset()
    if type(value) is not list:
        raise ValueError(mismatch(kind(value), "[]string"))
    for name in value:
        if name is not None and type(name) is not str:
            raise ValueError(mismatch(kind(name), "string"))
    names = [name or "" for name in value]
    for name in names:
        if name not in PARITY_TRACERS and name != VM_TRACE:
            raise UnknownTraceType(name)
    return frozenset(names)


TRACE_TYPES = Param(
    "traceTypes",
    trace_types,
    parity.TRACE_TYPES,
    summary="The members of the result: any of trace, vmTrace and stateDiff.",
)


def replay_options(types: frozenset[str], *, with_hash: bool) -> TraceOptions:
    """Return the tracer whose result has the members of these types.

    with_hash: whether the result has a `transactionHash`.
    """
    flags = types & PARITY_TRACERS.keys()
    if with_hash:
        flags |= {"transactionHash"}
    replay = NativeTracer(PARITY_REPLAY, frozenset(flags))
    return TraceOptions(VmTracing(replay) if VM_TRACE in types else replay)
