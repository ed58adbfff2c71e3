"""Calls, and overrides of the state and the block that they see."""

from __future__ import annotations

from evm.chain_config import LADDER
from jsonrpc.params import Schema
from nodeapi.schemas.building import array_of, component, object_with, or_null
from nodeapi.schemas.transactions import ACCESS_LIST, AUTHORIZATION
from nodeapi.schemas.values import (
    ADDRESS,
    DATA,
    HASH32,
    QUANTITY,
    STRING,
    UNSIGNED,
)

FORK = component("Fork", {"type": "string", "enum": list(LADDER)})
"""The name of a fork."""

_CALL_MEMBERS: dict[str, Schema] = {
    "from": ADDRESS,
    "to": or_null(ADDRESS),
    "gas": QUANTITY,
    "gasPrice": QUANTITY,
    "maxFeePerGas": QUANTITY,
    "maxPriorityFeePerGas": QUANTITY,
    "value": QUANTITY,
    "nonce": QUANTITY,
    "data": DATA,
    "input": DATA,
    "accessList": ACCESS_LIST,
    "chainId": QUANTITY,
    "maxFeePerBlobGas": QUANTITY,
    "blobVersionedHashes": array_of(HASH32),
    "authorizationList": array_of(AUTHORIZATION),
}

CALL = component("Call", object_with(_CALL_MEMBERS, " ".join(_CALL_MEMBERS)))

CALL_OR_HASH: Schema = {"oneOf": [HASH32, CALL]}
"""The hash of a transaction, or a call."""

CREATED_ACCESS_LIST = object_with(
    {"accessList": ACCESS_LIST, "error": STRING, "gasUsed": QUANTITY},
    optional="error",
)

_SLOTS: Schema = {
    "type": "object",
    "propertyNames": HASH32,
    "additionalProperties": HASH32,
}

_ACCOUNT_OVERRIDE_MEMBERS: dict[str, Schema] = {
    "nonce": QUANTITY,
    "code": DATA,
    "balance": QUANTITY,
    "state": _SLOTS,
    "stateDiff": _SLOTS,
    "movePrecompileToAddress": ADDRESS,
}

STATE_OVERRIDES = component(
    "StateOverrides",
    {
        "type": "object",
        "propertyNames": ADDRESS,
        "additionalProperties": object_with(
            _ACCOUNT_OVERRIDE_MEMBERS, " ".join(_ACCOUNT_OVERRIDE_MEMBERS)
        ),
    },
)

BLOCK_OVERRIDE_MEMBERS: dict[str, Schema] = {
    "number": QUANTITY,
    "difficulty": QUANTITY,
    "time": QUANTITY,
    "gasLimit": QUANTITY,
    "feeRecipient": ADDRESS,
    "prevRandao": HASH32,
    "baseFeePerGas": QUANTITY,
    "blobBaseFee": QUANTITY,
    "slotNumber": QUANTITY,
    "fork": FORK,
}

BLOCK_OVERRIDES = component(
    "BlockOverrides",
    object_with(BLOCK_OVERRIDE_MEMBERS, " ".join(BLOCK_OVERRIDE_MEMBERS)),
)

_OUTCOME = component(
    "ForkOutcome",
    object_with(
        {
            "fork": STRING,
            "status": or_null(QUANTITY),
            "gasUsed": QUANTITY,
            "executionGas": QUANTITY,
            "stateGas": QUANTITY,
            "output": DATA,
            "error": STRING,
            "logs": array_of(
                object_with(
                    {"address": ADDRESS, "topics": array_of(HASH32), "data": DATA}
                )
            ),
        },
        optional="gasUsed executionGas stateGas output error",
    ),
)
"""An execution by the rules of a fork. The status is null if the fork does not allow it."""

_FRAME = component(
    "ComparedFrame",
    object_with(
        {
            "type": STRING,
            "from": ADDRESS,
            "to": ADDRESS,
            "value": QUANTITY,
            "gas": QUANTITY,
            "gasUsed": QUANTITY,
            "input": DATA,
            "output": DATA,
            "error": STRING,
            "calls": UNSIGNED,
        },
        optional="to value error",
    ),
)

FORK_COMPARISON = component(
    "ForkComparison",
    object_with(
        {
            "forkA": _OUTCOME,
            "forkB": _OUTCOME,
            "firstDifference": or_null(
                object_with(
                    {
                        "path": array_of(UNSIGNED),
                        "differs": array_of(STRING),
                        "frameA": _FRAME,
                        "frameB": _FRAME,
                    }
                )
            ),
        }
    ),
)
