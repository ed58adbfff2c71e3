"""`trace_`: flat traces in Parity's format, with mining rewards.

The entries are flatCallTracer's, with Parity's error texts.

Source: https://openethereum.github.io/JSONRPC-trace-module
"""

from __future__ import annotations

from contextlib import AsyncExitStack

from evm.tracers.native import FLAT_CALL, NativeTracer
from jsonrpc.params import Param
from jsonrpc.stream import Stream
from nodeapi.encoding import BlockReference, block_number_or_hash, hash32
from nodeapi.errors.traces import TransactionNotFound
from nodeapi.methods import traces
from nodeapi.methods.catalog import registry
from nodeapi.methods.context import TRACE, Context
from nodeapi.methods.parity import flat_list, flat_stream, reward_traces
from nodeapi.methods.rewards import block_rewards
from nodeapi.methods.trace_options import TraceOptions
from nodeapi.results.answers import Answer
from nodeapi.schemas.building import named
from nodeapi.schemas.parity import FLAT_TRACES_OR_NULL
from nodeapi.schemas.values import BLOCK_PARAMETER, HASH32

_FLAT = NativeTracer(FLAT_CALL, frozenset({"convertParityErrors"}))
_OPTIONS = TraceOptions(_FLAT)


@registry.method(
    "trace_block",
    params=[Param("block", block_number_or_hash, BLOCK_PARAMETER)],
    result=named("traces", FLAT_TRACES_OR_NULL),
    summary="Returns all calls and rewards of a block, null when there is no such block.",
    credits=20,
    capability=TRACE,
    is_slow=True,
)
async def trace_block(context: Context, block: BlockReference) -> Answer | None:
    """Return the flat traces of a block, canonical or not."""
    traces.require_tracers(context, _OPTIONS)
    store, network_id = context.store, context.network.id
    block_hash = await traces.named_block(context, block)
    if block_hash is None:
        return None
    answer = await traces.block_answer(context, block_hash, _OPTIONS)
    if answer is None:
        return None
    if not isinstance(answer, Stream):
        return flat_list(answer, await _rewards(context, block_hash))
    async with AsyncExitStack() as unless_sent:
        unless_sent.push_async_callback(answer.aclose)
        rewards = await _rewards(context, block_hash)
        sizes = await store.trace_sizes(network_id, block_hash)
        if sizes is None:
            return None
        unless_sent.pop_all()
    return flat_stream(answer, sizes.transactions, rewards)


async def _rewards(context: Context, block_hash: bytes) -> bytes:
    """Return the reward entries of a block."""
    number, rewards = await block_rewards(context, block_hash)
    return reward_traces(rewards, block_hash, number)


@registry.method(
    "trace_transaction",
    params=[Param("transactionHash", hash32, HASH32)],
    result=named("traces", FLAT_TRACES_OR_NULL),
    summary="Returns all calls of a transaction, null when there is none.",
    credits=10,
    capability=TRACE,
    is_slow=True,
)
async def trace_transaction(context: Context, transaction_hash: bytes) -> Answer | None:
    """Return the flat traces of a transaction of the canonical chain."""
    try:
        return await traces.trace_transaction(context, transaction_hash, _OPTIONS)
    except TransactionNotFound:
        return None
