"""Tasks that trace a block, or search the traces of many blocks.

Source: go-ethereum v1.17.10, eth/tracers/api.go `TraceBlock`
"""

from __future__ import annotations

import time
from itertools import chain
from typing import TYPE_CHECKING, Any

import orjson

from evm.block_keys import known_keys
from evm.blocks import Block, decode_block
from evm.chain_config import InvalidChainConfig
from evm.errors import InvalidTransaction
from evm.rlp import RlpError
from evm.tracers.frame_events import Events
from evm.tracers.record import RecordTooLarge
from evm.tracers.steps import TracerError
from jsonrpc.errors import RpcError
from nodeapi.chain.branches import Branches
from nodeapi.chain.replay import Origin, Replay
from nodeapi.errors.blocks import HistoryPruned
from nodeapi.errors.traces import TraceTooLarge
from nodeapi.tracing.context import (
    SERVER_ERROR,
    TaskContext,
    TaskFailed,
    TaskResult,
    TransientFailure,
)
from nodeapi.tracing.execution import snapshot
from nodeapi.tracing.jobs import JavaScriptProgram, tracer_from_json
from nodeapi.tracing.outputs import Output
from nodeapi.tracing.states import PastRows
from nodeapi.tracing.trace_filter import TraceFilter, TraceSearch
from nodeapi.tracing.tracer_runs import TracerRun, events_of, place_of

if TYPE_CHECKING:
    from evm.rules.fork import Fork
    from evm.tracers.native import NativeTracer
    from nodeapi.tracing.context import Task, TaskContext
    from nodeapi.tracing.jobs import Executed
    from nodeapi.tracing.states import BlockState


_CANONICAL = (
    "SELECT 1 FROM nodeapi_block WHERE network_id = %s AND number = %s AND is_canonical"
)


def trace_block(context: TaskContext, arguments: dict[str, Any]) -> TaskResult:
    """Trace the transactions of a block on the state of its parent.

    arguments: `block`, its RLP as hexadecimal data; `tracer`; `seconds` for each
        transaction; `first` and `last`, the range of transactions to be traced.

    Raises: TaskFailed.
    """
    try:
        block = decode_block(bytes.fromhex(arguments["block"][2:]))
    except RlpError as error:
        text = f"could not decode block: {error}"
        raise TaskFailed(SERVER_ERROR, text) from error
    if block.header.number == 0:
        raise TaskFailed(SERVER_ERROR, "genesis is not traceable")
    parent = _parent(context, block)
    header = block.header
    try:
        fork = parent.child_fork(header.number, header.timestamp)
    except InvalidChainConfig as error:
        raise TaskFailed(SERVER_ERROR, str(error)) from error
    return _traced(context, arguments, _origin(block, fork, parent))


def trace_stored(context: TaskContext, arguments: dict[str, Any]) -> TaskResult:
    """Trace the transactions of the job's block, which was proved and not executed.

    arguments: as of `trace_block`, without `block`; `is_single`, whether the result is
        that of the transaction `first` alone.

    Raises: TaskFailed; UnknownPast.
    """
    return _traced(context, arguments, stored_origin(context))


def stored_origin(context: TaskContext) -> Origin:
    """Return the job's block with everything that its execution needs.

    Raises: TransientFailure if it is not stored, HistoryPruned if its parent is not;
        UnknownPast.
    """
    stored = Branches(context.connection, context.network_id).find(context.block_hash)
    if stored is None:
        raise TransientFailure(SERVER_ERROR, "header for hash not found")
    block = stored.block()
    try:
        parent = context.state_after(block.header.parent_hash)
    except TaskFailed:
        raise HistoryPruned((context.checkpoint or 0) + 1) from None
    if isinstance(parent.state, PastRows):
        parent.state.require(known_keys(block))
    return _origin(block, context.state.fork, parent)


def _traced(
    context: TaskContext, arguments: dict[str, Any], origin: Origin
) -> TaskResult:
    """Return the traces of a block's transactions. Raises: TaskFailed."""
    block, is_single = origin.block, arguments.get("is_single", False)
    tracer = tracer_from_json(dict(arguments["tracer"]))
    events = events_of(tracer)
    output = Output(context.write)
    begin = b"["
    replay: Replay | None = None
    try:
        replay = Replay(origin, events)
        for index in range(min(len(block.transactions), arguments["last"] + 1)):
            context.progress()
            if index < arguments["first"]:
                replay.skip()
                continue
            if not is_single:
                transaction_hash = block.transactions[index].hash.hex().encode()
                output.write(b'%b{"txHash":"0x%b",' % (begin, transaction_hash))
            _trace(
                *(replay, events, tracer, block, index, arguments["seconds"], output),
                is_single=is_single,
            )
            if not is_single:
                output.write(b"}")
            begin = b","
    except TracerError as error:  # perhaps a timeout
        raise TransientFailure(SERVER_ERROR, str(error)) from error
    except InvalidChainConfig as error:
        raise TaskFailed(SERVER_ERROR, str(error)) from error
    except InvalidTransaction as error:
        raise TaskFailed(SERVER_ERROR, f"tracing failed: {error}") from error
    except RecordTooLarge as error:
        raise TaskFailed(SERVER_ERROR, TraceTooLarge(index).message) from error
    if not is_single:
        output.write(b"[]" if begin == b"[" else b"]")
    return TaskResult(output.result(), replay.gas_used)


def _parent(context: TaskContext, block: Block) -> BlockState:
    """Return the state on which a block is executed. Raises: TransientFailure."""
    header = block.header
    try:
        return context.state_after(header.parent_hash)
    except TaskFailed:
        pass
    number = header.number - 1
    key = (context.network_id, number)
    found = number < 2**63 and context.connection.execute(_CANONICAL, key).fetchone()
    name = f"0x{header.parent_hash.hex()}" if found else f"#{number}"
    raise TransientFailure(SERVER_ERROR, f"block {name} not found")


def _origin(block: Block, fork: Fork, parent: BlockState) -> Origin:
    """Return the origin of a block's execution by the rules of a fork."""
    hashes = chain([block.header.parent_hash], parent.ancestor_hashes)
    return Origin(block, fork, parent.config, parent.state, hashes)


def _trace(
    replay: Replay,
    events: Events,
    tracer: Executed | NativeTracer,
    block: Block,
    index: int,
    seconds: float,
    output: Output,
    *,
    is_single: bool,
) -> None:
    """Execute the next transaction, and write the rest of its entry.

    A JavaScript program that fails leaves an error in the entry, as in geth.
    is_single: whether there is no entry, but the result alone.

    Raises: TracerError, InvalidTransaction, RecordTooLarge.
    """
    is_program = isinstance(tracer, JavaScriptProgram) and tracer.source != ""
    is_program = is_program and not is_single
    pieces: list[bytes] = []
    write = pieces.append if is_program else output.write
    if not is_single:
        write(b'"result":')
    try:
        deadline = time.monotonic() + max(seconds, 0.0)
        try:
            run = TracerRun(tracer, write, deadline)
        except TracerError:
            replay.skip()
            raise
        if run.steps is None:
            replay.skip()
        else:
            replay.trace(run.steps, max(seconds, 0.0))
        run.finish(events, replay.world, place_of(block, index))
    except TracerError as error:
        if not is_program:
            raise
        pieces = [b'"error":' + orjson.dumps(str(error))]
    for piece in pieces:
        output.write(piece)


def trace_filter(context: TaskContext, arguments: Any) -> bytes:
    """Return the flat traces that a `TraceFilter` admits.

    The job's block is the last one of the filter. Raises: TransientFailure.
    """
    wanted = TraceFilter.from_json(arguments)
    output = Output(context.write)
    connection = context.connection
    search = TraceSearch(connection, context.network_id, context.block_hash, wanted)
    try:
        with snapshot(connection):
            search.run(output.write)
    except RpcError as error:
        raise TransientFailure(error.code, error.message, error.data) from error
    return output.result()


TASKS: dict[str, Task] = {
    "traceBlock": trace_block,
    "traceStored": trace_stored,
    "trace_filter": trace_filter,
}
