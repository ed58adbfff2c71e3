"""Tasks that execute calls after a block: results, the gas that is needed, simulations.

Source: go-ethereum v1.17.10, internal/ethapi/api.go
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from evm.chain_config import InvalidChainConfig
from evm.checks import CallRejected
from evm.simulation.arguments import (
    CallArguments,
    CallMessage,
    InvalidCall,
    call_message,
)
from evm.simulation.budget import GasBudget
from evm.simulation.call import execute_call
from evm.simulation.errors import SimulationError
from evm.simulation.estimate import GasEstimator, NoEstimate
from evm.simulation.overrides import InvalidOverride, override_state
from evm.simulation.planning import check_difficulties, plan_blocks
from evm.simulation.revert import REVERT_CODE, revert_message
from evm.simulation.simulator import Base, Simulator
from evm.simulation.world import WrappingWorld
from evm.trie import NodeCache
from nodeapi.arguments.calls import (
    decode_block_overrides,
    decode_call,
    decode_state_overrides,
)
from nodeapi.arguments.simulations import decode_simulation
from nodeapi.chain.trie_at import NODES_CACHED, TooManyChanges, trie_at
from nodeapi.documents.simulated import simulated_block_document
from nodeapi.encoding import data, quantity
from nodeapi.results.proofs import MAX_CHANGES
from nodeapi.tracing.context import (
    SERVER_ERROR,
    TaskFailed,
    TaskResult,
    TransientFailure,
)
from nodeapi.tracing.execution import snapshot
from nodeapi.tracing.proved_tries import proved_tries

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evm.precompiles.contract import Precompile
    from evm.simulation.block import CallBlock
    from evm.state_roots import Tries
    from evm.world import World
    from nodeapi.arguments.simulations import Simulation
    from nodeapi.tracing.context import Task, TaskContext
    from nodeapi.tracing.states import BlockState


_REFUSALS = (CallRejected, InvalidCall, InvalidChainConfig, InvalidOverride)


@dataclass(slots=True)
class Setting:
    """The state and the block in which a call is executed, overrides included."""

    state: BlockState
    world: World
    block: CallBlock
    precompiles: dict[bytes, Precompile] | None
    """Contracts in place of the fork's; None: the fork's."""


def prepare(context: TaskContext, arguments: dict[str, Any]) -> Setting:
    """Return the setting of a call.

    arguments: `state` and `block` are overrides, both optional.

    Raises: TaskFailed, InvalidOverride, InvalidChainConfig.
    """
    state = context.state
    block = state.call_block
    changed_block, changed_state = arguments.get("block"), arguments.get("state")
    if changed_block is not None:
        overrides = decode_block_overrides(changed_block)
        overrides.refuse_unsupported()
        block = block.overridden(overrides)
    world = WrappingWorld(state.state)
    precompiles = None
    if changed_state:
        accounts = decode_state_overrides(changed_state)
        precompiles = override_state(world, accounts, block.fork)
    return Setting(state, world, block, precompiles)


def call(context: TaskContext, arguments: dict[str, Any]) -> TaskResult:
    """Execute a call, and return its return data.

    arguments: `call`, `gas_cap` (0: none), and those of `prepare`. Raises: TaskFailed.
    """
    try:
        setting = prepare(context, arguments)
        message = message_of(setting, decode_call(arguments["call"]), arguments)
    except _REFUSALS as error:
        raise TaskFailed(SERVER_ERROR, str(error)) from error
    try:
        result = execute_call(
            setting.world, setting.block, message, precompiles=setting.precompiles
        )
    except CallRejected as error:
        text = f"err: {error.text} (supplied gas {message.gas})"
        raise TaskFailed(SERVER_ERROR, text) from error
    if result.is_reverted:
        fail_reverted(result.return_data, result.gas_used)
    if result.error is not None:
        raise TaskFailed(SERVER_ERROR, result.error, gas_used=result.gas_used)
    return TaskResult(data(result.return_data), result.gas_used)


def estimate(context: TaskContext, arguments: dict[str, Any]) -> TaskResult:
    """Return the gas limit that a call needs. arguments: as of `call`.

    As in geth, precompiled contracts stay where they are. Raises: TaskFailed.
    """
    gas_cap = arguments["gas_cap"]
    try:
        setting = prepare(context, arguments)
        asked = decode_call(arguments["call"])
        message = message_of(setting, asked, arguments, default_gas=0)
    except _REFUSALS as error:
        raise TaskFailed(SERVER_ERROR, str(error)) from error
    estimator = GasEstimator(setting.world, setting.block, message)
    try:
        limit = estimator.estimate(gas_cap)
    except CallRejected as error:
        raise TaskFailed(
            SERVER_ERROR, error.text, gas_used=estimator.gas_used
        ) from error
    except NoEstimate as error:
        if error.revert is not None:
            fail_reverted(error.revert, estimator.gas_used)
        raise TaskFailed(
            SERVER_ERROR, str(error), gas_used=estimator.gas_used
        ) from error
    return TaskResult(quantity(limit), estimator.gas_used)


def fail_reverted(output: bytes, gas_used: int) -> NoReturn:
    """Raise the error of a reverted call. output: its return data."""
    raise TaskFailed(REVERT_CODE, revert_message(output), f"0x{output.hex()}", gas_used)


def message_of(
    setting: Setting,
    asked: CallArguments,
    arguments: dict[str, Any],
    default_gas: int | None = None,
) -> CallMessage:
    """Return the message of a call. Raises: InvalidCall."""
    return call_message(
        asked,
        chain_id=setting.block.config.chain_id,
        base_fee=setting.block.base_fee,
        gas_cap=arguments["gas_cap"],
        default_gas=default_gas,
    )


REPEATABLE = frozenset({"call"})
"""Tasks that may begin again; see `nodeapi.tracing.tasks`."""


WINDOW_EXCEEDED = -32602, "distance to target block exceeds maximum proof window"
"""Code and text of the error if too many accounts or slots have changed since the base
block."""

_nodes = NodeCache(NODES_CACHED)
"""Trie nodes that the simulations of this process share."""


def simulate(context: TaskContext, arguments: Any) -> TaskResult:
    """Return the result of eth_simulateV1.

    arguments: `payload`, see `nodeapi.arguments.simulations`; `gas_cap`, the gas of all
        calls together, 0 without a limit; `nodes`, proved trie nodes as hexadecimal digits,
        for a sparse network if the stored ones don't suffice.
    Raises: TaskFailed, UnknownNodes.
    """
    simulation = decode_simulation(arguments["payload"])
    budget = GasBudget(arguments["gas_cap"])
    try:
        # One snapshot, because the tries must not change with the chain.
        with snapshot(context.connection):
            documents = _documents(context, simulation, budget, arguments)
    except SimulationError as error:
        raise TaskFailed(error.code, error.text, gas_used=budget.gas_used) from error
    except TooManyChanges as error:
        raise TransientFailure(*WINDOW_EXCEEDED, gas_used=budget.gas_used) from error
    return TaskResult(b"[" + b",".join(documents) + b"]", budget.gas_used)


def _documents(
    context: TaskContext,
    simulation: Simulation,
    budget: GasBudget,
    arguments: Mapping[str, Any],
) -> list[bytes]:
    """Return the block objects. Raises: SimulationError, TooManyChanges, TaskFailed."""
    after = context.state
    planned = plan_blocks(simulation.blocks, after.header)
    check_difficulties(planned, after.header, after.config)
    tries: Tries = proved_tries(
        context, after, arguments, cache=_nodes, max_changes=MAX_CHANGES
    ) or trie_at(
        context.connection,
        context.network_id,
        context.block_hash,
        cache=_nodes,
        max_changes=MAX_CHANGES,
    )
    base = Base(after.header, after.config, after.state, tries, after.ancestor_hashes)
    simulator = Simulator(
        base,
        budget,
        traces_transfers=simulation.traces_transfers,
        validates=simulation.validates,
    )
    return [
        simulated_block_document(simulator.execute(block), full=simulation.is_full)
        for block in planned
    ]


TASKS: dict[str, Task] = {"call": call, "estimate": estimate, "simulate": simulate}
