"""Logs, searches for them, filters and subscriptions; receipts."""

from __future__ import annotations

from jsonrpc.params import Schema
from nodeapi.schemas.building import (
    array_of,
    component,
    object_with,
    or_null,
    sized_data,
)
from nodeapi.schemas.transactions import TRANSACTION
from nodeapi.schemas.values import (
    ADDRESS,
    BLOCK_NUMBER_OR_TAG,
    BOOLEAN,
    DATA,
    HASH32,
    QUANTITY,
)

_TOPIC: Schema = {"oneOf": [HASH32, array_of(HASH32), {"type": "null"}]}

LOG = component(
    "Log",
    object_with(
        {
            "address": ADDRESS,
            "topics": array_of(HASH32),
            "data": DATA,
            "blockHash": HASH32,
            "blockNumber": QUANTITY,
            "blockTimestamp": QUANTITY,
            "transactionHash": HASH32,
            "transactionIndex": QUANTITY,
            "logIndex": QUANTITY,
            "removed": BOOLEAN,
        }
    ),
)

LOGS = array_of(LOG)

LOG_CRITERIA = component(
    "LogCriteria",
    object_with(
        {
            "blockHash": HASH32,
            "fromBlock": BLOCK_NUMBER_OR_TAG,
            "toBlock": BLOCK_NUMBER_OR_TAG,
            "address": {"oneOf": [ADDRESS, array_of(ADDRESS), {"type": "null"}]},
            "topics": {**array_of(_TOPIC), "maxItems": 4},
        },
        optional="blockHash fromBlock toBlock address topics",
    ),
)
"""The blocks, addresses and topics of a search for logs."""

FILTER_CHANGES = array_of({"oneOf": [LOG, HASH32, TRANSACTION]})
"""The result of a poll: logs, hashes of blocks, or pending transactions."""

SUBSCRIPTION_KIND: Schema = {
    "type": "string",
    "enum": ["newHeads", "logs", "newPendingTransactions", "syncing"],
}

SUBSCRIPTION_OPTIONS = component(
    "SubscriptionOptions",
    object_with(
        {
            "address": {"oneOf": [ADDRESS, array_of(ADDRESS)]},
            "topics": {**array_of(_TOPIC), "maxItems": 4},
        },
        optional="address topics",
    ),
)
"""The filter of a subscription to logs."""


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
