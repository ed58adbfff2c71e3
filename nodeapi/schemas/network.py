"""A network's forks, kept data and progress."""

from __future__ import annotations

from jsonrpc.params import Schema
from nodeapi.schemas.building import component, object_with, or_null, sized_data
from nodeapi.schemas.values import ADDRESS, BOOLEAN, HASH32, QUANTITY, STRING, UNSIGNED

_CONTRACTS: Schema = {"type": "object", "additionalProperties": ADDRESS}

_FORK_CONFIG = component(
    "ForkConfig",
    object_with(
        {
            "activationTime": UNSIGNED,
            "blobSchedule": or_null(
                object_with(
                    {
                        "target": UNSIGNED,
                        "max": UNSIGNED,
                        "baseFeeUpdateFraction": UNSIGNED,
                    }
                )
            ),
            "chainId": QUANTITY,
            "forkId": sized_data(4),
            "precompiles": _CONTRACTS,
            "systemContracts": _CONTRACTS,
        }
    ),
)

CONFIG = object_with(
    dict.fromkeys(("current", "next", "last"), or_null(_FORK_CONFIG)),
)

_KEPT = object_with(
    {
        "disabled": BOOLEAN,
        "oldestBlock": QUANTITY,
        "deleteStrategy": object_with({"type": STRING, "retentionBlocks": QUANTITY}),
    },
    optional="oldestBlock deleteStrategy",
)

CAPABILITIES = object_with(
    {
        "head": object_with({"number": QUANTITY, "hash": HASH32}),
        **dict.fromkeys(
            ("state", "tx", "logs", "receipts", "blocks", "stateproofs"), _KEPT
        ),
    }
)

SYNCING: Schema = {
    "oneOf": [
        {"type": "boolean", "enum": [False]},
        {
            "type": "object",
            "required": ["startingBlock", "currentBlock", "highestBlock"],
            "additionalProperties": QUANTITY,
        },
    ]
}
