"""Arguments and results of eth_simulateV1."""

from __future__ import annotations

from nodeapi.schemas.blocks import BLOCK, WITHDRAWAL
from nodeapi.schemas.building import array_of, component, object_with
from nodeapi.schemas.calls import BLOCK_OVERRIDE_MEMBERS, CALL, STATE_OVERRIDES
from nodeapi.schemas.logs import LOG
from nodeapi.schemas.values import BOOLEAN, DATA, HASH32, INTEGER, QUANTITY, STRING

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
