"""Numbers, bytes, and the ways to name a block."""

from __future__ import annotations

from jsonrpc.params import Schema
from nodeapi.schemas.building import (
    array_of,
    component,
    object_with,
    or_null,
    sized_data,
)

BOOLEAN: Schema = {"type": "boolean"}
STRING: Schema = {"type": "string"}
INTEGER: Schema = {"type": "integer"}
UNSIGNED: Schema = {"type": "integer", "minimum": 0}
"""A JSON number, 0 or more."""
NUMBER: Schema = {"oneOf": [UNSIGNED, {"type": "string"}]}
"""A JSON number, or decimal or hexadecimal digits."""

INDICES = array_of(NUMBER)
DATA = component("Data", {"type": "string", "pattern": "^0x([0-9a-fA-F]{2})*$"})

QUANTITY = component(
    "Quantity", {"type": "string", "pattern": "^0x(0|[1-9a-f][0-9a-f]*)$"}
)

QUANTITY_OR_NULL = or_null(QUANTITY)
HASH32 = component("Hash32", sized_data(32))
HASH32_OR_NULL = or_null(HASH32)
HASHES_OR_NULL = or_null(array_of(HASH32))
ADDRESS = component("Address", sized_data(20))
ADDRESSES_OR_NULL = or_null(array_of(ADDRESS))
NO_ACCOUNTS: Schema = {"type": "array", "items": ADDRESS, "maxItems": 0}

_TAG = component(
    "BlockTag",
    {"type": "string", "enum": ["latest", "earliest", "pending", "safe", "finalized"]},
)

BLOCK_NUMBER_OR_TAG: Schema = {"oneOf": [QUANTITY, _TAG]}

BLOCK_PARAMETER = component(
    "BlockParameter",
    {
        "oneOf": [
            QUANTITY,
            _TAG,
            HASH32,
            object_with({"blockNumber": BLOCK_NUMBER_OR_TAG}),
            object_with(
                {"blockHash": HASH32, "requireCanonical": BOOLEAN},
                optional="requireCanonical",
            ),
        ]
    },
)
