"""Results of the `ots_` methods."""

from __future__ import annotations

from nodeapi.schemas.blocks import FORK_MEMBERS, HEADER_MEMBERS, WITHDRAWAL
from nodeapi.schemas.building import array_of, object_with, or_null
from nodeapi.schemas.logs import RECEIPT
from nodeapi.schemas.transactions import TRANSACTION
from nodeapi.schemas.values import (
    ADDRESS,
    BOOLEAN,
    DATA,
    HASH32,
    QUANTITY,
    STRING,
    UNSIGNED,
)

OTTERSCAN_TRACE = array_of(
    object_with(
        {
            "type": STRING,
            "depth": UNSIGNED,
            "from": ADDRESS,
            "to": ADDRESS,
            "value": or_null(QUANTITY),
            "input": DATA,
            "output": DATA,
        }
    )
)

OTTERSCAN_OPERATIONS = array_of(
    object_with(
        {
            "type": {"type": "integer", "enum": [0, 1, 2, 3]},
            "from": ADDRESS,
            "to": ADDRESS,
            "value": QUANTITY,
        }
    )
)

CONTRACT_CREATOR_OR_NULL = or_null(object_with({"hash": HASH32, "creator": ADDRESS}))

_OTTERSCAN_BLOCK = object_with(
    {
        **HEADER_MEMBERS,
        "totalDifficulty": QUANTITY,
        "transactionCount": UNSIGNED,
        "transactions": array_of(TRANSACTION),
        "withdrawals": array_of(WITHDRAWAL),
    },
    optional=f"totalDifficulty transactions withdrawals {FORK_MEMBERS}",
)

BLOCK_DETAILS_OR_NULL = or_null(
    object_with(
        {
            "block": _OTTERSCAN_BLOCK,
            "issuance": object_with(
                {"blockReward": QUANTITY, "uncleReward": QUANTITY, "issuance": QUANTITY}
            ),
            "totalFees": QUANTITY,
        }
    )
)

BLOCK_PAGE_OR_NULL = or_null(
    object_with(
        {"fullblock": _OTTERSCAN_BLOCK, "receipts": array_of({"type": "object"})}
    )
)

SEARCH_PAGE = object_with(
    {
        "txs": array_of(TRANSACTION),
        "receipts": array_of(
            {"allOf": [RECEIPT, object_with({"timestamp": UNSIGNED})]}
        ),
        "firstPage": BOOLEAN,
        "lastPage": BOOLEAN,
    }
)
