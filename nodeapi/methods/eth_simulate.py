"""`eth_simulateV1`: blocks that are executed after a stored block, and not kept.

Source: execution-apis src/eth/execute.yaml; go-ethereum internal/ethapi/simulate.go
"""

from __future__ import annotations

from typing import Any

import orjson
from django.conf import settings

from evm.simulation.errors import SimulationError
from jsonrpc.errors import InvalidParams
from jsonrpc.params import Param
from nodeapi.arguments.simulations import (
    Simulation,
    decode_simulation,
    encode_simulation,
)
from nodeapi.encoding import LATEST, BlockReference, block_number_or_hash
from nodeapi.errors.arguments import SimulationTooLarge
from nodeapi.methods.catalog import registry
from nodeapi.methods.context import Context
from nodeapi.methods.eth_calls import fragment
from nodeapi.methods.node_proofs import run_with_nodes
from nodeapi.results.answers import Answer
from nodeapi.schemas.blocks import BLOCK, WITHDRAWAL
from nodeapi.schemas.building import array_of, component, named, object_with
from nodeapi.schemas.calls import BLOCK_OVERRIDE_MEMBERS, CALL, STATE_OVERRIDES
from nodeapi.schemas.logs import LOG
from nodeapi.schemas.values import (
    BLOCK_PARAMETER,
    BOOLEAN,
    DATA,
    HASH32,
    INTEGER,
    QUANTITY,
    STRING,
)

_SIMULATION_BLOCK_OVERRIDES = object_with(
    {
        **BLOCK_OVERRIDE_MEMBERS,
        "beaconRoot": HASH32,
        "withdrawals": array_of(WITHDRAWAL),
    },
    " ".join([*BLOCK_OVERRIDE_MEMBERS, "beaconRoot withdrawals"]),
)

_BLOCK_STATE_CALLS = object_with(
    {
        "blockOverrides": _SIMULATION_BLOCK_OVERRIDES,
        "stateOverrides": STATE_OVERRIDES,
        "calls": array_of(CALL),
    },
    optional="blockOverrides stateOverrides calls",
)

SIMULATION = component(
    "Simulation",
    object_with(
        {
            "blockStateCalls": array_of(_BLOCK_STATE_CALLS),
            "traceTransfers": BOOLEAN,
            "validation": BOOLEAN,
            "returnFullTransactions": BOOLEAN,
        },
        optional="traceTransfers validation returnFullTransactions",
    ),
)

_SIMULATED_CALL = component(
    "SimulatedCall",
    object_with(
        {
            "returnData": DATA,
            "logs": array_of(LOG),
            "gasUsed": QUANTITY,
            "maxUsedGas": QUANTITY,
            "status": QUANTITY,
            "error": object_with(
                {"message": STRING, "code": INTEGER, "data": DATA},
                optional="data",
            ),
        },
        optional="error",
    ),
)

SIMULATED_BLOCKS = array_of(
    {
        "allOf": [
            BLOCK,
            object_with({"calls": array_of(_SIMULATED_CALL)}),
        ]
    }
)


def given_simulation(value: Any) -> tuple[Simulation, orjson.Fragment]:
    """Decode a payload; return it, and as a task's JSON.

    Raises: ValueError, SimulationTooLarge.
    """
    try:
        simulation = decode_simulation(value)
    except SimulationError as error:
        raise SimulationTooLarge(error.text) from error
    return simulation, fragment(encode_simulation(simulation))


@registry.method(
    "eth_simulateV1",
    params=[
        Param(
            "payload",
            given_simulation,
            SIMULATION,
            summary="Blocks with their calls, and overrides of the block and the state.",
        ),
        Param(
            "block",
            block_number_or_hash,
            BLOCK_PARAMETER,
            required=False,
            default=LATEST,
            summary="The block after which the blocks are simulated; latest by default. The "
            "state at pending is that at latest.",
        ),
    ],
    result=named("blocks", SIMULATED_BLOCKS),
    summary="Executes calls in simulated blocks, and returns the blocks with the results "
    "of the calls. The price rises by 1 credit for each further 500,000 gas, and for "
    "each millisecond of processor time beyond 100.",
    credits=20,
    is_slow=True,
)
async def simulate(
    context: Context,
    payload: tuple[Simulation, orjson.Fragment],
    block: BlockReference,
) -> Answer:
    """Return simulated blocks with all roots, and the results of their calls."""
    simulation, encoded = payload
    if not simulation.blocks:
        raise InvalidParams("empty input")
    _require_contracts(context, simulation)
    block_hash = await context.store.state_hash(context.network.id, block)
    arguments: dict[str, Any] = {
        "payload": encoded,
        "gas_cap": settings.NODEAPI_CALL_GAS,
    }
    return await run_with_nodes(context, "simulate", block_hash, arguments)


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
