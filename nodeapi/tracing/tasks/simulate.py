"""The task of eth_simulateV1: simulated blocks with all their roots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evm.simulation.budget import GasBudget
from evm.simulation.errors import SimulationError
from evm.simulation.planning import plan_blocks
from evm.simulation.simulator import Base, Simulator
from evm.trie import NodeCache
from nodeapi.arguments.simulations import decode_simulation
from nodeapi.chain.trie_at import NODES_CACHED, TooManyChanges, trie_at
from nodeapi.documents.simulated import simulated_block_document
from nodeapi.results.proofs import MAX_CHANGES
from nodeapi.tracing.context import TaskFailed, TaskResult, TransientFailure
from nodeapi.tracing.execution import snapshot

if TYPE_CHECKING:
    from nodeapi.arguments.simulations import Simulation
    from nodeapi.tracing.context import Task, TaskContext

WINDOW_EXCEEDED = -32602, "distance to target block exceeds maximum proof window"
"""Code and text of the error if too many accounts or slots have changed since the base
block."""

_nodes = NodeCache(NODES_CACHED)
"""Trie nodes that the simulations of this process share."""


def simulate(context: TaskContext, arguments: Any) -> TaskResult:
    """Return the result of eth_simulateV1.

    arguments: `payload`, see `nodeapi.arguments.simulations`; `gas_cap`, the gas of all
        calls together, 0 without a limit.
    Raises: TaskFailed.
    """
    simulation = decode_simulation(arguments["payload"])
    budget = GasBudget(arguments["gas_cap"])
    try:
        # One snapshot, because the tries must not change with the chain.
        with snapshot(context.connection):
            documents = _documents(context, simulation, budget)
    except SimulationError as error:
        raise TaskFailed(error.code, error.text, gas_used=budget.gas_used) from error
    except TooManyChanges as error:
        raise TransientFailure(*WINDOW_EXCEEDED, gas_used=budget.gas_used) from error
    return TaskResult(b"[" + b",".join(documents) + b"]", budget.gas_used)


def _documents(
    context: TaskContext, simulation: Simulation, budget: GasBudget
) -> list[bytes]:
    """Return the block objects. Raises: SimulationError, TooManyChanges, TaskFailed."""
    after = context.state
    planned = plan_blocks(simulation.blocks, after.header)
    tries = trie_at(
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


TASKS: dict[str, Task] = {"simulate": simulate}
