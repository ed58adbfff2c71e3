"""Logs, searches for them, filters and subscriptions."""

from __future__ import annotations

from jsonrpc.params import Schema
from nodeapi.schemas.building import array_of, component, object_with
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
