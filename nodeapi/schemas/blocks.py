"""Blocks, headers and uncles."""

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
from nodeapi.schemas.values import ADDRESS, DATA, HASH32, QUANTITY

WITHDRAWAL = object_with(
    {
        "index": QUANTITY,
        "validatorIndex": QUANTITY,
        "address": ADDRESS,
        "amount": QUANTITY,
    }
)

HEADER_MEMBERS: dict[str, Schema] = {
    "number": or_null(QUANTITY),
    "hash": or_null(HASH32),
    "parentHash": HASH32,
    "nonce": or_null(sized_data(8)),
    "mixHash": HASH32,
    "sha3Uncles": HASH32,
    "logsBloom": or_null(sized_data(256)),
    "transactionsRoot": HASH32,
    "stateRoot": HASH32,
    "receiptsRoot": HASH32,
    "miner": or_null(ADDRESS),
    "difficulty": QUANTITY,
    "extraData": DATA,
    "size": QUANTITY,
    "gasLimit": QUANTITY,
    "gasUsed": QUANTITY,
    "timestamp": QUANTITY,
    "uncles": array_of(HASH32),
    "baseFeePerGas": QUANTITY,
    "withdrawalsRoot": HASH32,
    "blobGasUsed": QUANTITY,
    "excessBlobGas": QUANTITY,
    "parentBeaconBlockRoot": HASH32,
    "requestsHash": HASH32,
    "blockAccessListHash": HASH32,
    "slotNumber": QUANTITY,
}

FORK_MEMBERS = (
    "baseFeePerGas withdrawalsRoot blobGasUsed excessBlobGas parentBeaconBlockRoot "
    "requestsHash blockAccessListHash slotNumber"
)
"""Members that blocks before a fork don't have, separated by spaces."""

HEADER = component(
    "Header",
    object_with(
        {
            name: schema
            for name, schema in HEADER_MEMBERS.items()
            if name not in ("size", "uncles")
        },
        optional=FORK_MEMBERS,
    ),
)

HEADER_OR_NULL = or_null(HEADER)

BLOCK = component(
    "Block",
    object_with(
        {
            **HEADER_MEMBERS,
            "totalDifficulty": QUANTITY,
            "transactions": array_of({"oneOf": [HASH32, TRANSACTION]}),
            "withdrawals": array_of(WITHDRAWAL),
        },
        optional=f"totalDifficulty withdrawals {FORK_MEMBERS}",
    ),
)

BLOCK_OR_NULL = or_null(BLOCK)
BAD_BLOCKS = array_of(object_with({"hash": HASH32, "block": BLOCK, "rlp": DATA}))
UNCLE = component("Uncle", object_with(HEADER_MEMBERS, optional=FORK_MEMBERS))
UNCLE_OR_NULL = or_null(UNCLE)
