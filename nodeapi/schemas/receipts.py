"""Receipts."""

from __future__ import annotations

from nodeapi.schemas.building import (
    array_of,
    component,
    object_with,
    or_null,
    sized_data,
)
from nodeapi.schemas.logs import LOGS
from nodeapi.schemas.values import ADDRESS, DATA, HASH32, QUANTITY

RECEIPT = component(
    "Receipt",
    object_with(
        {
            "blockHash": HASH32,
            "blockNumber": QUANTITY,
            "transactionHash": HASH32,
            "transactionIndex": QUANTITY,
            "type": QUANTITY,
            "from": ADDRESS,
            "to": or_null(ADDRESS),
            "contractAddress": or_null(ADDRESS),
            "effectiveGasPrice": QUANTITY,
            "cumulativeGasUsed": QUANTITY,
            "gasUsed": QUANTITY,
            "status": QUANTITY,
            "root": HASH32,
            "blobGasUsed": QUANTITY,
            "blobGasPrice": QUANTITY,
            "logsBloom": sized_data(256),
            "logs": LOGS,
        },
        optional="status root blobGasUsed blobGasPrice",
    ),
)

RECEIPT_OR_NULL = or_null(RECEIPT)
RECEIPTS_OR_NULL = or_null(array_of(RECEIPT))
RAW_RECEIPTS_OR_NULL = or_null(array_of(DATA))
