"""`eth_simulateV1`: blocks that are executed after a stored block, and not kept.

Source: execution-apis src/eth/execute.yaml; go-ethereum internal/ethapi/simulate.go
"""

from __future__ import annotations

import asyncio
from typing import Any

from evm.simulation.errors import SimulationError
from evm.simulation.planning import check_counts
from jsonrpc.errors import InvalidParams
from jsonrpc.params import Param, anything
from nodeapi import conf
from nodeapi.encoding import LATEST, BlockReference, block_number_or_hash
from nodeapi.errors.arguments import SimulationTooLarge
from nodeapi.methods.catalog import registry
from nodeapi.methods.context import Context
from nodeapi.methods.execution import run_task
from nodeapi.ports.answers import Answer
from nodeapi.schemas.building import named
from nodeapi.schemas.simulations import SIMULATED_BLOCKS, SIMULATION
from nodeapi.schemas.values import BLOCK_PARAMETER
from nodeapi.simulation_payload import (
    Simulation,
    count_calls,
    decode_simulation,
    encode_simulation,
)

_FEW_CALLS = 100
"""Calls that are decoded within milliseconds. Larger payloads are decoded in a thread."""


@registry.method(
    "eth_simulateV1",
    params=[
        Param(
            "payload",
            anything,
            SIMULATION,
            summary="Blocks with their calls, and changes of properties and accounts.",
        ),
        Param(
            "block",
            block_number_or_hash,
            BLOCK_PARAMETER,
            required=False,
            default=LATEST,
            summary="After which block; latest when it is left out.",
        ),
    ],
    result=named("blocks", SIMULATED_BLOCKS),
    summary="Executes calls in simulated blocks, and returns the blocks with the results "
    "of the calls. The price rises by 1 credit for each further 500,000 gas.",
    credits=20,
    is_slow=True,
)
async def simulate(context: Context, payload: Any, block: BlockReference) -> Answer:
    """Return simulated blocks with all roots, and the results of their calls."""
    simulation, encoded = await _decode(payload)
    _check_size(simulation)
    _require_contracts(context, simulation)
    block_hash = await context.store.state_hash(context.network.id, block)
    arguments = {"payload": encoded, "gas_cap": conf.call_gas()}
    return await run_task(context, "simulate", block_hash, arguments)


async def _decode(payload: Any) -> tuple[Simulation, dict[str, Any]]:
    """Return a payload, and its JSON for a worker process. Raises: InvalidParams."""

    def decode() -> tuple[Simulation, dict[str, Any]]:
        simulation = decode_simulation(payload)
        return simulation, encode_simulation(simulation)

    try:
        if count_calls(payload) <= _FEW_CALLS:
            return decode()
        return await asyncio.to_thread(decode)
    except ValueError as error:
        raise InvalidParams(f"invalid argument 0: {error}") from error


def _check_size(simulation: Simulation) -> None:
    """Check the numbers of blocks and calls. Raises: InvalidParams, SimulationTooLarge."""
    if not simulation.blocks:
        raise InvalidParams("empty input")
    try:
        check_counts([len(block.calls) for block in simulation.blocks])
    except SimulationError as error:
        raise SimulationTooLarge(error.text) from error


def _require_contracts(context: Context, simulation: Simulation) -> None:
    """Check the calls by the key's allowlist of contracts, which excludes creations.

    Raises: ContractNotAllowed.
    """
    allowlists = context.grant.allowlists
    if allowlists is not None:
        allowlists.require_contracts(
            b"" if call.to is None else call.to
            for block in simulation.blocks
            for call in block.calls
        )
