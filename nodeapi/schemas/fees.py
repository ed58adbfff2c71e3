"""The fee history."""

from __future__ import annotations

from jsonrpc.params import Schema
from nodeapi.schemas.building import array_of, object_with
from nodeapi.schemas.values import QUANTITY, UNSIGNED

BLOCK_COUNT: Schema = {"oneOf": [QUANTITY, UNSIGNED]}

PERCENTILES: Schema = {
    "oneOf": [
        {
            "type": "array",
            "items": {"type": "number", "minimum": 0, "maximum": 100},
            "maxItems": 100,
        },
        {"type": "null"},
    ]
}

_RATIOS: Schema = {"type": "array", "items": {"type": "number"}}

FEE_HISTORY = object_with(
    {
        "oldestBlock": QUANTITY,
        "reward": array_of(array_of(QUANTITY)),
        "baseFeePerGas": array_of(QUANTITY),
        "gasUsedRatio": {"oneOf": [_RATIOS, {"type": "null"}]},
        "baseFeePerBlobGas": array_of(QUANTITY),
        "blobGasUsedRatio": _RATIOS,
    },
    optional="reward baseFeePerGas baseFeePerBlobGas blobGasUsedRatio",
)
