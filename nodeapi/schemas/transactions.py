"""Transactions."""

from __future__ import annotations

from nodeapi.schemas.building import array_of, component, object_with, or_null
from nodeapi.schemas.values import ADDRESS, DATA, HASH32, QUANTITY

ACCESS_LIST = array_of(
    object_with({"address": ADDRESS, "storageKeys": array_of(HASH32)})
)

AUTHORIZATION = object_with(
    {
        "chainId": QUANTITY,
        "address": ADDRESS,
        "nonce": QUANTITY,
        "yParity": QUANTITY,
        "r": QUANTITY,
        "s": QUANTITY,
    }
)

TRANSACTION = component(
    "Transaction",
    object_with(
        {
            "blockHash": or_null(HASH32),
            "blockNumber": or_null(QUANTITY),
            "blockTimestamp": or_null(QUANTITY),
            "transactionIndex": or_null(QUANTITY),
            "hash": HASH32,
            "type": QUANTITY,
            "from": ADDRESS,
            "to": or_null(ADDRESS),
            "nonce": QUANTITY,
            "gas": QUANTITY,
            "gasPrice": QUANTITY,
            "maxFeePerGas": QUANTITY,
            "maxPriorityFeePerGas": QUANTITY,
            "maxFeePerBlobGas": QUANTITY,
            "value": QUANTITY,
            "input": DATA,
            "chainId": QUANTITY,
            "accessList": ACCESS_LIST,
            "blobVersionedHashes": array_of(HASH32),
            "authorizationList": array_of(AUTHORIZATION),
            "v": QUANTITY,
            "r": QUANTITY,
            "s": QUANTITY,
            "yParity": QUANTITY,
        },
        optional="maxFeePerGas maxPriorityFeePerGas maxFeePerBlobGas chainId "
        "accessList blobVersionedHashes authorizationList yParity",
    ),
)

FILLED_TRANSACTION = object_with(
    {
        "raw": DATA,
        "tx": object_with(
            {
                "type": QUANTITY,
                "chainId": QUANTITY,
                "nonce": QUANTITY,
                "to": or_null(ADDRESS),
                "gas": QUANTITY,
                "gasPrice": or_null(QUANTITY),
                "maxPriorityFeePerGas": or_null(QUANTITY),
                "maxFeePerGas": or_null(QUANTITY),
                "maxFeePerBlobGas": QUANTITY,
                "value": QUANTITY,
                "input": DATA,
                "accessList": ACCESS_LIST,
                "blobVersionedHashes": array_of(HASH32),
                "blobs": array_of(DATA),
                "commitments": array_of(DATA),
                "proofs": array_of(DATA),
                "authorizationList": array_of(AUTHORIZATION),
                "v": QUANTITY,
                "r": QUANTITY,
                "s": QUANTITY,
                "yParity": QUANTITY,
                "hash": HASH32,
            },
            optional="chainId maxFeePerBlobGas accessList blobVersionedHashes "
            "blobs commitments proofs "
            "authorizationList yParity",
        ),
    }
)

TRANSACTIONS = array_of(TRANSACTION)
TRANSACTION_OR_NULL = or_null(TRANSACTION)
