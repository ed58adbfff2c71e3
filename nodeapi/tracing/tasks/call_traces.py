"""Tasks that trace calls after a block, or between two transactions of a block.

Source: go-ethereum v1.17.10, eth/tracers/api.go `TraceCall`;
https://openethereum.github.io/JSONRPC-trace-module
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from eth_typing import Hash32

from evm.block_keys import known_keys
from evm.chain_config import InvalidChainConfig
from evm.checks import CallRejected
from evm.simulation.arguments import (
    CallArguments,
    CallMessage,
    InvalidCall,
    call_message,
)
from evm.simulation.block import CallBlock
from evm.simulation.call import CallResult, execute_call
from evm.simulation.overrides import InvalidOverride, override_state
from evm.simulation.traced import execute_traced_call
from evm.simulation.transactions import transaction_arguments
from evm.simulation.world import WrappingWorld
from evm.tracers.derived import RecordedTransaction
from evm.tracers.record import RecordTooLarge, call_document
from evm.tracers.steps import TracerError
from evm.transactions import CREATE_ADDRESS
from nodeapi.arguments.calls import (
    decode_block_overrides,
    decode_call,
    decode_state_overrides,
)
from nodeapi.chain.branches import Branches
from nodeapi.chain.listed_state import replay_before
from nodeapi.chain.replay import Origin, Replay
from nodeapi.errors.blocks import HistoryPruned
from nodeapi.errors.traces import TraceTooLarge
from nodeapi.sending.decoding import decode_submission
from nodeapi.sending.rules import check_signature
from nodeapi.tracing.context import (
    SERVER_ERROR,
    TaskFailed,
    TaskResult,
    TransientFailure,
)
from nodeapi.tracing.jobs import tracer_from_json
from nodeapi.tracing.outputs import Output
from nodeapi.tracing.states import PastRows
from nodeapi.tracing.tracer_runs import TracerRun, events_of

if TYPE_CHECKING:
    from evm.precompiles.contract import Precompile
    from evm.simulation.overrides import BlockOverrides
    from evm.world import World
    from nodeapi.tracing.context import Task, TaskContext
    from nodeapi.tracing.states import BlockState

_REFUSALS = (InvalidCall, InvalidChainConfig, InvalidOverride)


@dataclass(slots=True)
class _Scene:
    """The state and the block in which calls are traced, overrides included."""

    world: World
    block: CallBlock
    precompiles: dict[bytes, Precompile] | None
    """Contracts in place of the fork's; None: the fork's."""
    gas_cap: int
    seconds: float
    """Time for each call."""
    log_count: int = 0
    """Number of the block's logs before the next call."""

    def message(self, asked: CallArguments) -> CallMessage:
        """Return the message of a call. Raises: InvalidCall."""
        return call_message(
            asked,
            chain_id=self.block.config.chain_id,
            base_fee=self.block.base_fee,
            gas_cap=self.gas_cap,
        )


def trace_call(context: TaskContext, arguments: dict[str, Any]) -> TaskResult:
    """Trace a call, and return the tracer's result.

    arguments: `call`, `gas_cap`, `tracer`, `seconds`, and optionally `state`, `block`,
        `fork`, the name of the fork in place of the block's own, and `index`, the
        transaction of the block before which the call is executed.

    Raises: TaskFailed.
    """
    state = _state(context)
    index = arguments.get("index")
    try:
        world: World = WrappingWorld(state.state)
        log_count = 0
        if index is not None:
            replay = before(context, state, index)
            world, log_count = replay.world, replay.log_count
        scene = _scene(state, world, arguments)
        scene.log_count = log_count
        message = scene.message(decode_call(arguments["call"]))
    except _REFUSALS as error:
        raise TaskFailed(SERVER_ERROR, str(error)) from error
    output = Output(context.write)
    try:
        result = _run(scene, message, arguments["tracer"], output)
    except CallRejected as error:
        raise TaskFailed(SERVER_ERROR, f"tracing failed: {error.text}") from error
    return TaskResult(output.result(), result.gas_used)


def parity_traces(context: TaskContext, arguments: dict[str, Any]) -> TaskResult:
    """Trace calls one after the other, each on the state after the previous call.

    arguments: those of `trace_call` except `call`, `tracer` and `index`. In addition,
        `calls` is a list of pairs: a call, or a signed transaction as hexadecimal data,
        and the place of its tracer in the list `tracers`. `is_list` is whether the
        result is a list.

    Raises: TaskFailed.
    """
    state = _state(context)
    try:
        scene = _scene(state, WrappingWorld(state.state), arguments)
    except _REFUSALS as error:
        raise TaskFailed(SERVER_ERROR, str(error)) from error
    output, gas_used, is_list = Output(context.write), 0, arguments["is_list"]
    begin = b"[" if is_list else b""
    tracers = arguments["tracers"]
    for asked, place in arguments["calls"]:
        try:
            call = _signed(asked, scene) if type(asked) is str else decode_call(asked)
            message = scene.message(call)
            output.write(begin)
            gas_used += _run(scene, message, tracers[place], output).gas_used
        except _REFUSALS as error:
            raise TaskFailed(SERVER_ERROR, str(error), gas_used=gas_used) from error
        except CallRejected as error:
            text = f"err: {error.text} (supplied gas {message.gas})"
            raise TaskFailed(SERVER_ERROR, text, gas_used=gas_used) from error
        begin = b","
    if is_list:
        output.write(b"[]" if begin == b"[" else b"]")
    return TaskResult(output.result(), gas_used)


def _state(context: TaskContext) -> BlockState:
    """Return the state after the task's block. Raises: TransientFailure."""
    try:
        return context.state
    except TaskFailed:
        text = f"block 0x{context.block_hash.hex()} not found"
        raise TransientFailure(SERVER_ERROR, text) from None


def before(context: TaskContext, state: BlockState, index: int) -> Replay:
    """Return the execution of a block before a transaction.

    Raises: TaskFailed; HistoryPruned if its parent is below the oldest stored block;
        UnknownPast; InvalidChainConfig if the block's fork is not supported.
    """
    header = state.header
    if header.number == 0:
        raise TaskFailed(SERVER_ERROR, "no transaction in genesis")
    try:
        parent = context.state_after(header.parent_hash)
    except TaskFailed:
        if context.checkpoint is not None:
            raise HistoryPruned(context.checkpoint + 1) from None
        text = f"parent 0x{header.parent_hash.hex()} not found"
        raise TransientFailure(SERVER_ERROR, text) from None
    stored = Branches(context.connection, context.network_id).find(context.block_hash)
    assert stored is not None
    block = stored.block()
    if index >= len(block.transactions) and (index or block.transactions):
        text = f"transaction index {index} out of range for block 0x{header.hash.hex()}"
        raise TaskFailed(SERVER_ERROR, text)
    if isinstance(parent.state, PastRows):
        parent.state.require(known_keys(block))
    origin = Origin(
        block, state.fork, state.config, parent.state, state.ancestor_hashes
    )
    return replay_before(context.connection, context.network_id, origin, index)


def _scene(state: BlockState, world: World, arguments: dict[str, Any]) -> _Scene:
    """Return the scene of calls, and apply overrides to the world.

    Raises: InvalidOverride, InvalidChainConfig.
    """
    changed_block, changed_state = arguments.get("block"), arguments.get("state")
    block, precompiles, fork = state.call_block, None, arguments.get("fork")
    if changed_block is not None or fork is not None:
        overrides = decode_block_overrides(changed_block)
        if fork is not None:
            overrides = replace(overrides, fork=fork)
        block = _overridden(block, state.header.hash, overrides)
    if changed_state:
        accounts = decode_state_overrides(changed_state)
        precompiles = override_state(world, accounts, block.fork)
    return _Scene(world, block, precompiles, arguments["gas_cap"], arguments["seconds"])


def _overridden(
    block: CallBlock, block_hash: Hash32, overrides: BlockOverrides
) -> CallBlock:
    """Return a block with overridden properties.

    In the next block, BLOCKHASH returns the hash of this one, as it would there.
    """
    overrides.refuse_unsupported()
    found = block.overridden(overrides)
    if overrides.number == block.number + 1:
        hashes = _NextHashes(block_hash, block.ancestor_hashes)
        found = replace(found, ancestor_hashes=hashes)
    return found


@dataclass(frozen=True, slots=True)
class _NextHashes:
    """Ancestor hashes of the next block. They can be iterated more than once."""

    block_hash: Hash32
    ancestor_hashes: Any

    def __iter__(self) -> Any:
        return chain([self.block_hash], self.ancestor_hashes)


def _run(
    scene: _Scene, message: CallMessage, tracer: Any, output: Output
) -> CallResult:
    """Execute a call, and write its tracer's result. tracer: as `tracer_to_json` has it.

    Raises: CallRejected, TaskFailed.
    """
    wanted = tracer_from_json(dict(tracer))
    deadline = time.monotonic() + max(scene.seconds, 0.0)
    events = events_of(wanted)
    events.log_count = scene.log_count
    try:
        run = TracerRun(wanted, output.write, deadline)
        if run.steps is None:
            result = execute_call(
                scene.world,
                scene.block,
                message,
                precompiles=scene.precompiles,
                watcher=events,
            )
        else:
            result = execute_traced_call(
                scene.world,
                scene.block,
                message,
                run.steps,
                deadline=deadline,
                precompiles=scene.precompiles,
                events=events,
            )
        run.finish(events, scene.world, _identity(message))
        scene.log_count = events.log_count
    except TracerError as error:  # perhaps a timeout
        raise TransientFailure(SERVER_ERROR, str(error)) from error
    except RecordTooLarge as error:
        raise TaskFailed(SERVER_ERROR, TraceTooLarge(0).message) from error
    return result


def _identity(message: CallMessage) -> RecordedTransaction:
    """Return a call as a transaction without block and record."""
    to = None if message.to == CREATE_ADDRESS else message.to
    document = call_document(
        message.sender, to, message.gas, message.value, message.data
    )
    return RecordedTransaction(b"", 0, 0, b"", document, b"", b"", b"")


def _signed(digits: str, scene: _Scene) -> CallArguments:
    """Return the call of a signed transaction. Its nonce is not checked.

    Raises: TaskFailed.
    """
    try:
        transaction = decode_submission(bytes.fromhex(digits[2:])).transaction
        check_signature(transaction, scene.block.config.chain_id)
    except ValueError as error:
        raise TaskFailed(SERVER_ERROR, str(error)) from error
    return transaction_arguments(transaction)


TASKS: dict[str, Task] = {"traceCall": trace_call, "parityTraces": parity_traces}
