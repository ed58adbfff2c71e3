"""`eth_`: transactions by their hash, their receipts, and how many a block has.

A block or transaction that there is not is null, never an error; so is a hash that
only a side block's transaction has.
Source: go-ethereum internal/ethapi/api.go, execution-apis src/eth/{block,transaction}.yaml
"""

from __future__ import annotations

from jsonrpc.params import Param
from nodeapi import schemas
from nodeapi.documents import count_transactions, count_uncles
from nodeapi.encoding import (
    BlockReference,
    block_number,
    block_number_or_hash,
    hash32,
    index,
    quantity,
)
from nodeapi.errors import HeaderForHashNotFound, NotCanonical
from nodeapi.methods.catalog import registry
from nodeapi.methods.context import Context
from nodeapi.ports import Answer, Document, MaybeAnswer
from nodeapi.store.base import settled

_BLOCK_HASH = Param("blockHash", hash32, schemas.HASH32)
_BLOCK_NUMBER = Param("block", block_number, schemas.BLOCK_NUMBER_OR_TAG)
_TRANSACTION_HASH = Param("transactionHash", hash32, schemas.HASH32)


def _quantity_or_null(value: int | None) -> bytes:
    return b"null" if value is None else quantity(value)


@registry.method(
    "eth_getTransactionByHash",
    params=[_TRANSACTION_HASH],
    result=schemas.named("transaction", schemas.TRANSACTION_OR_NULL),
    summary="Returns the transaction with a hash, null when there is none.",
)
def get_transaction_by_hash(context: Context, transaction_hash: bytes) -> Document:
    """Return a transaction of the canonical chain."""
    return context.store.transaction_by_hash(context.network.id, transaction_hash)


@registry.method(
    "eth_getTransactionByBlockNumberAndIndex",
    params=[_BLOCK_NUMBER, Param("transactionIndex", index, schemas.QUANTITY)],
    result=schemas.named("transaction", schemas.TRANSACTION_OR_NULL),
    summary="Returns the transaction at a position in a block, null when there is none.",
)
async def get_transaction_by_block_number_and_index(
    context: Context, number_or_tag: int | str, transaction_index: int
) -> bytes | None:
    """Return a transaction of a canonical block."""
    store, network_id = context.store, context.network.id
    block_hash = await settled(store.canonical_hash(network_id, number_or_tag))
    if block_hash is None:
        return None
    return await settled(
        store.transaction_by_block_hash_and_index(
            network_id, block_hash, transaction_index
        )
    )


@registry.method(
    "eth_getTransactionReceipt",
    params=[_TRANSACTION_HASH],
    result=schemas.named("receipt", schemas.RECEIPT_OR_NULL),
    summary="Returns the receipt of a transaction, null when there is none.",
)
def get_transaction_receipt(context: Context, transaction_hash: bytes) -> MaybeAnswer:
    """Return what a transaction of the canonical chain left behind."""
    return context.store.receipt(context.network.id, transaction_hash)


@registry.method(
    "eth_getBlockReceipts",
    params=[Param("block", block_number_or_hash, schemas.BLOCK_PARAMETER)],
    result=schemas.named("receipts", schemas.RECEIPTS_OR_NULL),
    summary="Returns the receipts of a block's transactions, null without such a block.",
    credits=10,
)
def get_block_receipts(context: Context, block: BlockReference) -> MaybeAnswer:
    """Return the receipts of a block, canonical or not, in order."""
    if block.hash is None or block.require_canonical:
        return _receipts_of(context, block)
    return context.store.block_receipts(context.network.id, block.hash)


async def _receipts_of(context: Context, block: BlockReference) -> Answer | None:
    """Return the receipts of a block that must be on the canonical chain."""
    store, network_id = context.store, context.network.id
    block_hash = block.hash
    if block_hash is None:
        number_or_tag = block.tag or block.number or 0
        block_hash = await settled(store.canonical_hash(network_id, number_or_tag))
        if block_hash is None:
            return None
    else:
        try:
            await store.resolve_state(network_id, block)
        except (HeaderForHashNotFound, NotCanonical):
            return None
    return await settled(store.block_receipts(network_id, block_hash))


@registry.method(
    "eth_getBlockTransactionCountByHash",
    params=[_BLOCK_HASH],
    encode=_quantity_or_null,
    result=schemas.named("count", schemas.COUNT_OR_NULL),
    summary="Returns how many transactions a block has, null without such a block.",
)
async def count_transactions_by_hash(context: Context, block_hash: bytes) -> int | None:
    """Return the number of transactions of a block, canonical or not."""
    document = await _block(context, block_hash)
    return None if document is None else count_transactions(document)


@registry.method(
    "eth_getBlockTransactionCountByNumber",
    params=[_BLOCK_NUMBER],
    encode=_quantity_or_null,
    result=schemas.named("count", schemas.COUNT_OR_NULL),
    summary="Returns how many transactions a block has, null without such a block.",
)
async def count_transactions_by_number(
    context: Context, number_or_tag: int | str
) -> int | None:
    """Return the number of transactions of a canonical block."""
    document = await _canonical_block(context, number_or_tag)
    return None if document is None else count_transactions(document)


@registry.method(
    "eth_getUncleCountByBlockHash",
    params=[_BLOCK_HASH],
    encode=_quantity_or_null,
    result=schemas.named("count", schemas.COUNT_OR_NULL),
    summary="Returns how many uncles a block names, null without such a block.",
)
async def count_uncles_by_hash(context: Context, block_hash: bytes) -> int | None:
    """Return the number of uncles of a block, canonical or not."""
    document = await _block(context, block_hash)
    return None if document is None else count_uncles(document)


@registry.method(
    "eth_getUncleCountByBlockNumber",
    params=[_BLOCK_NUMBER],
    encode=_quantity_or_null,
    result=schemas.named("count", schemas.COUNT_OR_NULL),
    summary="Returns how many uncles a block names, null without such a block.",
)
async def count_uncles_by_number(
    context: Context, number_or_tag: int | str
) -> int | None:
    """Return the number of uncles of a canonical block."""
    document = await _canonical_block(context, number_or_tag)
    return None if document is None else count_uncles(document)


async def _block(context: Context, block_hash: bytes) -> bytes | None:
    """Return a block object with hashes in the transactions' place."""
    network = context.network
    return await settled(
        context.store.block_by_hash(
            network.id, block_hash, False, network.emit_total_difficulty
        )
    )


async def _canonical_block(context: Context, number_or_tag: int | str) -> bytes | None:
    network = context.network
    return await settled(
        context.store.block_by_number(
            network.id, number_or_tag, False, network.emit_total_difficulty
        )
    )
