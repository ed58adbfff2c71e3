"""`trace_replay…`: Parity's results of transactions of stored blocks.

`trace` and `stateDiff` are computed from trace records, without execution. `vmTrace`
needs another execution of the block in a worker process.

Source: https://openethereum.github.io/JSONRPC-trace-module
"""

from __future__ import annotations

from contextlib import AsyncExitStack

from jsonrpc.params import Param
from jsonrpc.stream import Stream
from nodeapi.encoding import BlockReference, block_number_or_hash, hash32
from nodeapi.errors.traces import TransactionNotFound
from nodeapi.methods import traces
from nodeapi.methods.catalog import registry
from nodeapi.methods.context import TRACE, Context
from nodeapi.methods.parity import result_list, result_stream
from nodeapi.methods.trace_types import TRACE_TYPES, VM_TRACE, replay_options
from nodeapi.results.answers import Answer
from nodeapi.schemas.building import named
from nodeapi.schemas.parity import PARITY_RESULT_OR_NULL, PARITY_RESULTS_OR_NULL
from nodeapi.schemas.values import BLOCK_PARAMETER, HASH32


@registry.method(
    "trace_replayTransaction",
    params=[Param("transactionHash", hash32, HASH32), TRACE_TYPES],
    result=named("result", PARITY_RESULT_OR_NULL),
    summary="Returns the trace, vmTrace and stateDiff of a transaction, null when there "
    "is none.",
    credits=10,
    capability=TRACE,
    is_slow=True,
)
async def replay_transaction(
    context: Context, transaction_hash: bytes, types: frozenset[str]
) -> Answer | None:
    """Return Parity's result of a transaction of the canonical chain."""
    options = replay_options(types, with_hash=False)
    try:
        return await traces.trace_transaction(context, transaction_hash, options)
    except TransactionNotFound:
        return None


@registry.method(
    "trace_replayBlockTransactions",
    params=[
        Param("block", block_number_or_hash, BLOCK_PARAMETER),
        TRACE_TYPES,
    ],
    result=named("results", PARITY_RESULTS_OR_NULL),
    summary="Returns the trace, vmTrace and stateDiff of all transactions of a block, "
    "null when there is no such block.",
    credits=20,
    capability=TRACE,
    is_slow=True,
)
async def replay_block_transactions(
    context: Context, block: BlockReference, types: frozenset[str]
) -> Answer | None:
    """Return Parity's results of a block's transactions. The block may be a side block."""
    options = replay_options(types, with_hash=True)
    traces.require_tracers(context, options)
    store, network_id = context.store, context.network.id
    block_hash = await traces.named_block(context, block)
    if block_hash is None:
        return None
    if VM_TRACE in types:
        # Block 0 and unknown blocks cannot be executed.
        sizes = await store.trace_sizes(network_id, block_hash)
        if sizes is None or not sizes.transactions:
            return None if sizes is None else b"[]"
    answer = await traces.block_answer(context, block_hash, options)
    if answer is None or not isinstance(answer, Stream):
        return None if answer is None else result_list(answer)
    async with AsyncExitStack() as unless_sent:
        unless_sent.push_async_callback(answer.aclose)
        sizes = await store.trace_sizes(network_id, block_hash)
        if sizes is None:
            return None
        unless_sent.pop_all()
    return result_stream(answer, sizes.transactions)
