"""Accounts and slots, their proofs, and execution witnesses."""

from __future__ import annotations

from nodeapi.schemas.building import array_of, component, object_with, or_null
from nodeapi.schemas.values import ADDRESS, DATA, HASH32, QUANTITY

STORAGE_POSITION = component(
    "StoragePosition", {"type": "string", "pattern": "^(0x)?[0-9a-fA-F]{0,64}$"}
)

STORAGE_KEYS = array_of(STORAGE_POSITION)

POSITIONS_BY_ADDRESS = component(
    "PositionsByAddress",
    {"type": "object", "additionalProperties": array_of(HASH32)},
)

ACCOUNT_OR_NULL = or_null(
    object_with(
        {
            "balance": QUANTITY,
            "codeHash": HASH32,
            "nonce": QUANTITY,
            "storageRoot": HASH32,
        }
    )
)

ACCOUNT_INFO = object_with({"balance": QUANTITY, "nonce": QUANTITY, "code": DATA})

STORAGE_RANGE = object_with(
    {
        "storage": or_null(
            {
                "type": "object",
                "additionalProperties": object_with(
                    {"key": or_null(HASH32), "value": HASH32}
                ),
            }
        ),
        "nextKey": or_null(HASH32),
    }
)


PROOF = component(
    "Proof",
    object_with(
        {
            "address": ADDRESS,
            "accountProof": array_of(DATA),
            "balance": QUANTITY,
            "codeHash": HASH32,
            "nonce": QUANTITY,
            "storageHash": HASH32,
            "storageProof": array_of(
                object_with(
                    {
                        "key": {"oneOf": [QUANTITY, HASH32]},
                        "value": QUANTITY,
                        "proof": array_of(DATA),
                    }
                )
            ),
        }
    ),
)

OBJECT_HEADERS, RLP_HEADERS = "object", "rlp"
"""Forms of the headers in a witness: geth's, and that of other nodes."""

WITNESS_FORM = component(
    "WitnessForm",
    {
        "type": "object",
        "additionalProperties": False,
        "properties": {"headers": {"enum": [OBJECT_HEADERS, RLP_HEADERS]}},
    },
)

WITNESS = component(
    "Witness",
    object_with(
        {
            "headers": array_of({"oneOf": [{"type": "object"}, DATA]}),
            "codes": array_of(DATA),
            "state": array_of(DATA),
            "keys": or_null(array_of(DATA)),
        }
    ),
)
