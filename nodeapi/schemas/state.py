"""Accounts and slots."""

from __future__ import annotations

from nodeapi.schemas.building import array_of, component, object_with, or_null
from nodeapi.schemas.values import DATA, HASH32, QUANTITY

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
