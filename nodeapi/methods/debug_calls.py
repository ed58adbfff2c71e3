"""`debug_traceCall` and `debug_traceBlock`: traces of calls and blocks from a caller.

Source: go-ethereum v1.17.10, eth/tracers/api.go
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson

from jsonrpc.errors import RpcError
from jsonrpc.params import Param
from jsonrpc.source import Text
from jsonrpc.text import kind
from nodeapi.encoding import (
    LATEST,
    BlockReference,
    any_data,
    block_number_or_hash,
    data,
    index,
)
from nodeapi.errors.traces import BlockNotFound
from nodeapi.go.decoding import mismatch
from nodeapi.go.fields import GoField, decode_fields
from nodeapi.methods import traces
from nodeapi.methods.catalog import registry
from nodeapi.methods.context import TRACE, Context
from nodeapi.methods.eth_calls import (
    CALL,
    AskedCall,
    call_task,
    given_block,
    given_state,
)
from nodeapi.methods.trace_options import DEFAULT, OPTIONS, TraceOptions, trace_options
from nodeapi.methods.tracing_tasks import run_trace, trace_seconds
from nodeapi.results.answers import Answer
from nodeapi.schemas.building import named
from nodeapi.schemas.traces import (
    BLOCK_TRACES,
    CALL_TRACE_OPTIONS,
    TRACER_RESULT,
)
from nodeapi.schemas.values import BLOCK_PARAMETER, DATA
from nodeapi.tracing.jobs import tracer_to_json

_GO_TYPE = "tracers.TraceCallConfig"
_FIELDS = {
    "StateOverrides": GoField("state", given_state),
    "BlockOverrides": GoField("block", given_block),
    "TxIndex": GoField("index", index),
}
_NAMES = frozenset(name.casefold() for name in _FIELDS)


class PendingNotTraceable(RpcError):
    """Raised when a call is to be traced on the pending block."""

    remedy = "Trace the call on the tag latest."
    text = "tracing on top of pending is not supported"


@dataclass(frozen=True, slots=True)
class CallTraceOptions:
    """A tracer, and the overrides for the traced call, as JSON.

    index: the transaction of the block before which the call is executed. If None, the
        call is executed after the block.
    """

    trace: TraceOptions = DEFAULT
    state: orjson.Fragment | None = None
    block: orjson.Fragment | None = None
    index: int | None = None


def call_trace_options(value: Any, source: Text | None = None) -> CallTraceOptions:
    """Parse the options of debug_traceCall from an object or null.

    Raises: as `trace_options`.
    """
    if value is None:
        return CallTraceOptions()
    if type(value) is not dict:
        raise ValueError(mismatch(kind(value), _GO_TYPE))
    rest = {name: member for name, member in value.items() if not _is_ours(name)}
    ours = {name: member for name, member in value.items() if _is_ours(name)}
    found = decode_fields(ours, _GO_TYPE, _FIELDS)
    try:
        trace = trace_options(rest, source)
    except ValueError as error:
        # TraceCallConfig contains TraceConfig, whose name becomes a part of the path.
        named = str(error).replace(" TraceConfig.", " TraceCallConfig.TraceConfig.")
        raise ValueError(named) from None
    return CallTraceOptions(trace, **found)


def _is_ours(name: str) -> bool:
    return name.casefold() in _NAMES


@registry.method(
    "debug_traceCall",
    params=[
        CALL,
        Param(
            "block",
            block_number_or_hash,
            BLOCK_PARAMETER,
            required=False,
            default=LATEST,
            summary="The block after which the call is executed; latest by default, not "
            "pending.",
        ),
        Param(
            "options",
            call_trace_options,
            CALL_TRACE_OPTIONS,
            required=False,
            default=CallTraceOptions(),
            summary="The tracer and its options; the struct logger by default. Overrides of "
            "the state and the block. txIndex: the transaction of the block before which "
            "the call is executed. fork: the name of a fork by whose rules the call is "
            "executed.",
            reads_text=True,
        ),
    ],
    result=named("trace", TRACER_RESULT),
    summary="Executes a call after a block, and returns its trace. The price rises by 1 "
    "credit for each further 500,000 gas, and for each millisecond of processor time "
    "beyond 100.",
    credits=20,
    capability=TRACE,
    is_slow=True,
)
async def trace_call(
    context: Context,
    asked: AskedCall,
    block: BlockReference,
    options: CallTraceOptions,
) -> Answer:
    """Return the trace of a call. Its changes are discarded."""
    traces.require_tracers(context, options.trace)
    block_hash = await _block_hash(context, block)
    arguments: dict[str, Any] = {
        **call_task(asked, options.state, options.block),
        "tracer": tracer_to_json(options.trace.tracer),
        "seconds": trace_seconds(options.trace),
    }
    if options.index is not None:
        arguments["index"] = options.index
    if options.trace.fork is not None:
        arguments["fork"] = options.trace.fork
    return await run_trace(context, "traceCall", block_hash, arguments, options.trace)


async def _block_hash(context: Context, block: BlockReference) -> bytes:
    """Return the hash of the block that a parameter names.

    Like geth, `requireCanonical` is ignored.
    Raises: PendingNotTraceable, BlockNotFound.
    """
    if block.hash is not None:
        return block.hash
    if block.tag == "pending":
        raise PendingNotTraceable
    number = block.tag or block.number or 0
    found = await context.store.canonical_hash(context.network.id, number)
    if found is None:
        raise BlockNotFound(number)
    return found


@registry.method(
    "debug_traceBlock",
    params=[
        Param("rawBlock", any_data, DATA, summary="The block's RLP."),
        OPTIONS,
    ],
    result=named("traces", BLOCK_TRACES),
    summary="Executes a block that is given as RLP, and returns the traces of its "
    "transactions. Its parent has to be stored.",
    credits=20,
    capability=TRACE,
    is_slow=True,
)
async def trace_block(context: Context, raw: bytes, options: TraceOptions) -> Answer:
    """Return the traces of a block, which need not be stored."""
    traces.require_tracers(context, options)
    arguments = {
        "block": data(raw).decode()[1:-1],
        "tracer": tracer_to_json(options.tracer),
        "seconds": trace_seconds(options),
        "first": options.first,
        "last": options.last,
    }
    return await run_trace(context, "traceBlock", b"", arguments, options)
