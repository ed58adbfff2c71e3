"""Execution of one call with a tracer of instructions or call frames."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from evm.simulation.call import (
    RPC_CALL,
    CallResult,
    CallRules,
    call_state,
    run_call,
)
from evm.simulation.checks import check_call
from evm.tracers.frame_events import Events, FrameEvents
from evm.tracers.steps import StepTracer, TracedTransaction
from evm.transactions import CREATE_ADDRESS

if TYPE_CHECKING:
    from evm.precompiles.contract import Precompile
    from evm.simulation.arguments import CallMessage
    from evm.simulation.block import CallBlock
    from evm.state import State
    from evm.world import World


def execute_traced_call(
    world: World,
    block: CallBlock,
    call: CallMessage,
    tracer: StepTracer,
    *,
    deadline: float,
    rules: CallRules = RPC_CALL,
    precompiles: Mapping[bytes, Precompile] | None = None,
    block_hash: bytes = bytes(32),
    index: int = 0,
    events: Events | None = None,
) -> CallResult:
    """Execute a call as `execute_call` does, and report it to a tracer.

    deadline: in the time of `time.monotonic()`.
    block_hash, index: the call's place, as the tracer sees it.
    events: a new watcher that passes frames to the tracer, and may record them as well.

    Raises: CallRejected before the world is changed; TracerError, after which the
        world has a part of the changes.
    """
    if events is None:
        events = FrameEvents()
    state = call_state(
        world, block, call, rules=rules, precompiles=precompiles, watcher=events
    )
    world.lock_changes()
    check_call(
        state,
        call,
        checks_nonce=rules.checks_nonce,
        requires_fee=rules.requires_fee,
        limits_execution_gas=rules.limits_execution_gas,
    )
    events.attach(tracer, deadline)
    tracer.start(_traced(state, block, call, deadline, block_hash, index))
    result = run_call(state, call, rules)
    tracer.end(events.top, result.gas_used)
    return result


def _traced(
    state: State,
    block: CallBlock,
    call: CallMessage,
    deadline: float,
    block_hash: bytes,
    index: int,
) -> TracedTransaction:
    is_free = call.is_free
    return TracedTransaction(
        hash=call.hash,
        index=index,
        block_hash=block_hash,
        block_number=block.number,
        coinbase=block.coinbase,
        sender=call.sender,
        to=None if call.to == CREATE_ADDRESS else call.to,
        input=call.data,
        gas=call.gas,
        gas_tip=0 if is_free else call.gas_price - (block.base_fee or 0),
        value=call.value,
        precompiles=state.precompiles,
        state=state,
        deadline=deadline,
    )
