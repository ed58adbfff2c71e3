"""`portcullis_compareForks`: a transaction or a call by the rules of two forks."""

from __future__ import annotations

from typing import Any

import orjson
from django.conf import settings

from evm.rules.forks import FORKS
from evm.tracers.native import CALL as CALL_TRACER
from jsonrpc.errors import InvalidParams
from jsonrpc.params import Param
from nodeapi.arguments.calls import fork_name
from nodeapi.encoding import LATEST, BlockReference, block_number_or_hash, hash32
from nodeapi.errors.execution import ExecutionTimedOut, TaskTimeout
from nodeapi.errors.traces import TransactionNotFound
from nodeapi.methods.catalog import registry
from nodeapi.methods.context import TRACE, Context
from nodeapi.methods.eth_calls import (
    BLOCK_OVERRIDES,
    STATE_OVERRIDES,
    AskedCall,
    asked_call,
    call_task,
)
from nodeapi.methods.execution import run_task
from nodeapi.results.answers import Answer
from nodeapi.schemas.building import named
from nodeapi.schemas.calls import CALL_OR_HASH, FORK, FORK_COMPARISON
from nodeapi.schemas.values import BLOCK_PARAMETER

_NEWEST = FORKS[-1].name
_TIMEOUTS = 4
"""Timeouts of traces that a comparison may take: it executes twice, and in a block without a
stored access list also the transactions before."""


def call_or_hash(value: Any) -> AskedCall | bytes:
    """Decode a call, or the hash of a transaction. Raises: ValueError."""
    return hash32(value) if type(value) is str else asked_call(value)


@registry.method(
    "portcullis_compareForks",
    params=[
        Param(
            "transactionOrCall",
            call_or_hash,
            CALL_OR_HASH,
            summary="The hash of a transaction, or a call.",
        ),
        Param(
            "forkA",
            fork_name,
            FORK,
            required=False,
            summary="The name of a fork; that of the block by default.",
        ),
        Param(
            "forkB",
            fork_name,
            FORK,
            required=False,
            default=_NEWEST,
            summary="The name of another fork; the newest one by default.",
        ),
        Param(
            "block",
            block_number_or_hash,
            BLOCK_PARAMETER,
            required=False,
            summary="The block after which the call is executed; latest by default. The "
            "state at pending is that at latest.",
        ),
        STATE_OVERRIDES,
        BLOCK_OVERRIDES,
    ],
    result=named("comparison", FORK_COMPARISON),
    summary="Executes a transaction or a call by the rules of two forks, and returns "
    "status, gas, output and logs of both, with the first call frame that does something "
    "else. The price rises by 1 credit for each further 500,000 gas, and for each "
    "millisecond of processor time beyond 100.",
    credits=20,
    capability=TRACE,
    is_slow=True,
)
async def compare_forks(
    context: Context,
    asked: AskedCall | bytes,
    fork_a: str | None,
    fork_b: str,
    block: BlockReference | None,
    state_overrides: orjson.Fragment | None,
    block_overrides: orjson.Fragment | None,
) -> Answer:
    """Return the outcomes under both forks. A call's changes are discarded.

    Raises: TransactionNotFound; InvalidParams for a block or overrides of a transaction.
    """
    context.require_tracer(CALL_TRACER)
    store, network_id = context.store, context.network.id
    arguments: dict[str, Any] = {"forks": [fork_a, fork_b]}
    if isinstance(asked, bytes):
        if block or state_overrides or block_overrides:
            raise InvalidParams("block and overrides are for calls only")
        place = await store.find_transaction(network_id, asked)
        if place is None:
            raise TransactionNotFound
        block_hash = place.block_hash
        arguments["index"] = place.index
    else:
        block_hash = await store.state_hash(network_id, block or LATEST)
        arguments |= call_task(asked, state_overrides, block_overrides)
    timeout = settings.NODEAPI_TRACE_TIMEOUT * _TIMEOUTS
    async with context.turn:
        try:
            return await run_task(
                context, "compareForks", block_hash, arguments, timeout=timeout
            )
        except TaskTimeout:
            raise ExecutionTimedOut from None
