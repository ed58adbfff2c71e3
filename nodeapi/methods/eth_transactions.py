"""`eth_`: transactions by hash, receipts, uncles, and counts.

The result for a missing block, transaction or uncle is null, not an error. A
transaction that is only in side blocks counts as missing.

Source: go-ethereum internal/ethapi/api.go, execution-apis
src/eth/{block,transaction}.yaml
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from evm.blocks import decode_headers
from jsonrpc.later import Later, if_found
from jsonrpc.params import Param
from nodeapi.documents.blocks import count_transactions, count_uncles, uncle_document
from nodeapi.documents.pending import PendingBlock
from nodeapi.encoding import (
    BlockReference,
    block_number,
    block_number_or_hash,
    hash32,
    index,
    quantity_or_null,
)
from nodeapi.methods.catalog import registry
from nodeapi.methods.context import Context
from nodeapi.methods.traces import named_block
from nodeapi.relay.relay import Relay
from nodeapi.results.answers import Document, MaybeAnswer
from nodeapi.schemas.blocks import UNCLE_OR_NULL
from nodeapi.schemas.building import named
from nodeapi.schemas.logs import RECEIPT_OR_NULL, RECEIPTS_OR_NULL
from nodeapi.schemas.transactions import TRANSACTION_OR_NULL
from nodeapi.schemas.values import (
    BLOCK_NUMBER_OR_TAG,
    BLOCK_PARAMETER,
    HASH32,
    QUANTITY,
    QUANTITY_OR_NULL,
)

_BLOCK_HASH = Param("blockHash", hash32, HASH32)
_BLOCK_NUMBER = Param("block", block_number, BLOCK_NUMBER_OR_TAG)
_UNCLE_INDEX = Param("uncleIndex", index, QUANTITY)
_TRANSACTION_HASH = Param("transactionHash", hash32, HASH32)


@registry.method(
    "eth_getTransactionByHash",
    params=[_TRANSACTION_HASH],
    result=named("transaction", TRANSACTION_OR_NULL),
    summary="Returns the transaction with a hash, null when there is none. It may be "
    "pending at an upstream node of the network, or in the network's local pool.",
)
def get_transaction_by_hash(context: Context, transaction_hash: bytes) -> Document:
    """Return a transaction of the canonical chain, or a pending one."""
    network, relay = context.network, context.relay
    found = context.store.transaction_by_hash(network.id, transaction_hash)
    if relay is None:
        return found

    def look_further(document: bytes | None) -> Document:
        if document is not None:
            return Later(document)
        return Later.from_coroutine(
            relay.pending_transaction(network, transaction_hash, context.payer)
        )

    return found.then(look_further)


@registry.method(
    "eth_getTransactionByBlockNumberAndIndex",
    params=[_BLOCK_NUMBER, Param("transactionIndex", index, QUANTITY)],
    result=named("transaction", TRANSACTION_OR_NULL),
    summary="Returns the transaction at a position in a block, null when there is none.",
)
def get_transaction_by_block_number_and_index(
    context: Context, number_or_tag: int | str, transaction_index: int
) -> Document:
    """Return a transaction of a canonical block, or of the pending block."""
    if number_or_tag == "pending" and context.pending is not None:
        return _pending_block(context.pending, context).then(
            partial(_transaction_at, transaction_index)
        )
    store, network_id = context.store, context.network.id
    return if_found(
        store.canonical_hash(network_id, number_or_tag),
        lambda block_hash: store.transaction_by_block_hash_and_index(
            network_id, block_hash, transaction_index
        ),
    )


@registry.method(
    "eth_getTransactionReceipt",
    params=[_TRANSACTION_HASH],
    result=named("receipt", RECEIPT_OR_NULL),
    summary="Returns the receipt of a transaction, null when there is none.",
)
def get_transaction_receipt(context: Context, transaction_hash: bytes) -> MaybeAnswer:
    """Return the receipt of a transaction in the canonical chain."""
    return context.store.receipt(context.network.id, transaction_hash)


@registry.method(
    "eth_getBlockReceipts",
    params=[Param("block", block_number_or_hash, BLOCK_PARAMETER)],
    result=named("receipts", RECEIPTS_OR_NULL),
    summary="Returns the receipts of a block's transactions, null when there is no such "
    "block.",
    credits=10,
)
def get_block_receipts(context: Context, block: BlockReference) -> MaybeAnswer:
    """Return the receipts of a block, canonical or not, in order."""
    return if_found(
        named_block(context, block),
        lambda block_hash: context.store.block_receipts(
            context.network.id, block_hash, owner=context.customer
        ),
    )


@registry.method(
    "eth_getBlockTransactionCountByHash",
    params=[_BLOCK_HASH],
    encode=quantity_or_null,
    result=named("count", QUANTITY_OR_NULL),
    summary="Returns the number of transactions of a block, null when there is no such "
    "block.",
)
def count_transactions_by_hash(
    context: Context, block_hash: bytes
) -> Later[int | None]:
    """Return the number of transactions of a block, canonical or not."""
    return _block(context, block_hash).then(_counted(count_transactions))


@registry.method(
    "eth_getBlockTransactionCountByNumber",
    params=[_BLOCK_NUMBER],
    encode=quantity_or_null,
    result=named("count", QUANTITY_OR_NULL),
    summary="Returns the number of transactions of a block, null when there is no such "
    "block.",
)
def count_transactions_by_number(
    context: Context, number_or_tag: int | str
) -> Later[int | None]:
    """Return the number of transactions of a canonical block, or of the pending one."""
    return _canonical_block(context, number_or_tag).then(_counted(count_transactions))


@registry.method(
    "eth_getUncleCountByBlockHash",
    params=[_BLOCK_HASH],
    encode=quantity_or_null,
    result=named("count", QUANTITY_OR_NULL),
    summary="Returns the number of uncles of a block, null when there is no such block.",
)
def count_uncles_by_hash(context: Context, block_hash: bytes) -> Later[int | None]:
    """Return the number of uncles of a block, canonical or not."""
    return _block(context, block_hash).then(_counted(count_uncles))


@registry.method(
    "eth_getUncleCountByBlockNumber",
    params=[_BLOCK_NUMBER],
    encode=quantity_or_null,
    result=named("count", QUANTITY_OR_NULL),
    summary="Returns the number of uncles of a block, null when there is no such block.",
)
def count_uncles_by_number(
    context: Context, number_or_tag: int | str
) -> Later[int | None]:
    """Return the number of uncles of a canonical block, or of the pending one."""
    return _canonical_block(context, number_or_tag).then(_counted(count_uncles))


@registry.method(
    "eth_getUncleByBlockHashAndIndex",
    params=[_BLOCK_HASH, _UNCLE_INDEX],
    result=named("uncle", UNCLE_OR_NULL),
    summary="Returns the uncle at a position in a block, null when there is none.",
)
async def get_uncle_by_block_hash_and_index(
    context: Context, block_hash: bytes, uncle_index: int
) -> bytes | None:
    """Return the object of an uncle of a block, canonical or not, or None."""
    document = await _block(context, block_hash)
    if document is None or uncle_index >= count_uncles(document):
        return None
    raw = await context.store.raw_block(context.network.id, block_hash)
    return None if raw is None else uncle_document(decode_headers(raw)[1][uncle_index])


@registry.method(
    "eth_getUncleByBlockNumberAndIndex",
    params=[_BLOCK_NUMBER, _UNCLE_INDEX],
    result=named("uncle", UNCLE_OR_NULL),
    summary="Returns the uncle at a position in a block, null when there is none.",
)
async def get_uncle_by_block_number_and_index(
    context: Context, number_or_tag: int | str, uncle_index: int
) -> bytes | None:
    """Return the object of an uncle of a canonical block, or None.

    The pending block has none.
    """
    if number_or_tag == "pending" and context.pending is not None:
        return None
    store, network_id = context.store, context.network.id
    block_hash = await store.canonical_hash(network_id, number_or_tag)
    if block_hash is None:
        return None
    return await get_uncle_by_block_hash_and_index(context, block_hash, uncle_index)


def _block(context: Context, block_hash: bytes) -> Document:
    """Return a block object that has its transactions' hashes."""
    network = context.network
    return context.store.block_by_hash(
        network.id, block_hash, False, network.emit_total_difficulty
    )


def _canonical_block(context: Context, number_or_tag: int | str) -> Document:
    network, relay = context.network, context.pending
    if number_or_tag == "pending" and relay is not None:
        return _pending_block(relay, context).then(
            lambda block: None if block is None else block.hashes
        )
    return context.store.block_by_number(
        network.id, number_or_tag, False, network.emit_total_difficulty
    )


def _pending_block(relay: Relay, context: Context) -> Later[PendingBlock | None]:
    return Later.from_coroutine(relay.pending_block(context.network, context.payer))


def _transaction_at(index: int, block: PendingBlock | None) -> bytes | None:
    if block is None or index >= len(block.transactions):
        return None
    return block.transactions[index]


def _counted(count: Callable[[bytes], int]) -> Callable[[bytes | None], int | None]:
    """Return a function of a block object, or of None, which it returns."""
    return lambda document: None if document is None else count(document)
