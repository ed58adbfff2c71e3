"""`trace_call`, `trace_callMany` and `trace_rawTransaction`: calls in Parity's format.

Source: https://openethereum.github.io/JSONRPC-trace-module
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import orjson
from django.conf import settings
from eth_typing import Address

from jsonrpc.params import Param
from jsonrpc.text import kind
from nodeapi.arguments.calls import decode_call, encode_call
from nodeapi.encoding import LATEST, BlockReference, any_data, data
from nodeapi.errors.relay import TransactionRejected
from nodeapi.go.decoding import mismatch
from nodeapi.methods import traces
from nodeapi.methods.catalog import registry
from nodeapi.methods.context import TRACE, Context
from nodeapi.methods.eth_calls import (
    BLOCK,
    BLOCK_OVERRIDES,
    CALL,
    STATE_OVERRIDES,
    AskedCall,
    call_task,
    fragment,
)
from nodeapi.methods.trace_options import TraceOptions
from nodeapi.methods.trace_types import TRACE_TYPES, replay_options, trace_types
from nodeapi.methods.tracing_tasks import run_trace, trace_seconds
from nodeapi.results.answers import Answer
from nodeapi.schemas.building import named
from nodeapi.schemas.parity import CALLS_WITH_TYPES, PARITY_RESULT, PARITY_RESULTS
from nodeapi.schemas.values import DATA
from nodeapi.sending.decoding import decode_submission
from nodeapi.tracing.jobs import tracer_to_json

_PRICE = (
    "The price rises by 1 credit for each further 500,000 gas, and for each "
    "millisecond of processor time beyond 100."
)


class TypedCalls(NamedTuple):
    """The calls of trace_callMany. There may be hundreds of thousands.

    recipients: those of all calls, each once. None for a creation.
    types: the sets of trace types, each once.
    calls: pairs of a call and the place of its trace types in `types`, as a task's JSON.
    """

    recipients: Collection[Address | None]
    types: Sequence[frozenset[str]]
    calls: orjson.Fragment


def calls_with_types(value: Any) -> TypedCalls:
    """Decode a list of pairs of a call and its trace types."""
    if type(value) is not list:
        raise ValueError(mismatch(kind(value), "[]ethapi.TraceCallManyItem"))
    recipients: dict[Address | None, None] = {}
    places: dict[frozenset[str], int] = {}
    calls = []
    for pair in value:
        if type(pair) is not list or len(pair) != 2:
            raise ValueError("each item must be a list of a call and its trace types")
        call, types = decode_call(pair[0]), trace_types(pair[1])
        recipients[call.to] = None
        place = places.setdefault(types, len(places))
        calls.append((encode_call(call), place))
    return TypedCalls(recipients, list(places), fragment(calls))


@registry.method(
    "trace_call",
    params=[CALL, TRACE_TYPES, BLOCK, STATE_OVERRIDES, BLOCK_OVERRIDES],
    result=named("result", PARITY_RESULT),
    summary=f"Executes a call after a block, and returns its trace, vmTrace and "
    f"stateDiff. {_PRICE}",
    credits=20,
    capability=TRACE,
    is_slow=True,
)
async def trace_call(
    context: Context,
    asked: AskedCall,
    types: frozenset[str],
    block: BlockReference,
    state_overrides: orjson.Fragment | None,
    block_overrides: orjson.Fragment | None,
) -> Answer:
    """Return Parity's result of a call. Its changes are discarded."""
    options = _options(context, types)
    arguments = call_task(asked, state_overrides, block_overrides)
    arguments |= _single(arguments.pop("call"), options)
    return await _run(context, block, arguments, options)


@registry.method(
    "trace_callMany",
    params=[
        Param(
            "calls",
            calls_with_types,
            CALLS_WITH_TYPES,
            summary="Pairs of a call and its trace types.",
        ),
        BLOCK,
    ],
    result=named("results", PARITY_RESULTS),
    summary=f"Executes calls one after the other, each with the changes of the previous "
    f"ones, and returns the trace, vmTrace and stateDiff of each. {_PRICE}",
    credits=20,
    capability=TRACE,
    is_slow=True,
)
async def trace_call_many(
    context: Context,
    calls: TypedCalls,
    block: BlockReference,
) -> Answer:
    """Return Parity's results of calls. If one is rejected, all are."""
    options = [_options(context, types) for types in calls.types or [frozenset()]]
    task = _task(calls.calls, options, is_list=True)
    return await _run(context, block, task, options[0])


@registry.method(
    "trace_rawTransaction",
    params=[
        Param(
            "rawTransaction",
            any_data,
            DATA,
            summary="The signed transaction as EIP-2718 encodes it.",
        ),
        TRACE_TYPES,
        BLOCK,
    ],
    result=named("result", PARITY_RESULT),
    summary=f"Executes a signed transaction after a block without sending it, and returns "
    f"its trace, vmTrace and stateDiff. {_PRICE}",
    credits=20,
    capability=TRACE,
    is_slow=True,
)
async def trace_raw_transaction(
    context: Context, raw: bytes, types: frozenset[str], block: BlockReference = LATEST
) -> Answer:
    """Return Parity's result of a signed transaction. Its nonce is not checked.

    The recipient has to be in the key's allowlist of contracts, if there is one.
    """
    options = _options(context, types)
    _require_recipient(context, raw)
    digits = data(raw).decode()[1:-1]
    return await _run(context, block, _single(digits, options), options)


def _require_recipient(context: Context, raw: bytes) -> None:
    """Check the recipient of a signed transaction against the key's allowlist.

    Raises: ContractNotAllowed; TransactionRejected if the transaction is malformed.
    """
    allowlists = context.grant.allowlists
    if allowlists is None or not allowlists.contracts:
        return
    try:
        recipient = decode_submission(raw).transaction.to
    except ValueError as error:
        raise TransactionRejected(str(error)) from error
    allowlists.require_contracts([recipient])


def _options(context: Context, types: frozenset[str]) -> TraceOptions:
    """Return the tracer for trace types, if the key may use it.

    Raises: TracerNotAvailable, TracerNotEntitled.
    """
    options = replay_options(types, with_hash=False)
    traces.require_tracers(context, options)
    return options


def _single(call: Any, options: TraceOptions) -> dict[str, Any]:
    """Return the arguments of a task that traces one call, given as its JSON value."""
    return _task([(call, 0)], [options], is_list=False)


def _task(
    calls: Any, options: Sequence[TraceOptions], *, is_list: bool
) -> dict[str, Any]:
    """Return the arguments of a task that traces calls.

    calls: pairs of a call and the place of its tracer in `options`, as JSON values.
    """
    return {
        "calls": calls,
        "tracers": [tracer_to_json(one.tracer) for one in options],
        "is_list": is_list,
        "gas_cap": settings.NODEAPI_CALL_GAS,
    }


async def _run(
    context: Context,
    block: BlockReference,
    arguments: dict[str, Any],
    options: TraceOptions,
) -> Answer:
    """Return the result of a task that traces calls after a block."""
    arguments["seconds"] = trace_seconds(options)
    block_hash = await context.store.state_hash(context.network.id, block)
    return await run_trace(context, "parityTraces", block_hash, arguments, options)
