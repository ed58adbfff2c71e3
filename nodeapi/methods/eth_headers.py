"""`eth_`: headers, and transactions as EIP-2718 encodes them.

Source: go-ethereum internal/ethapi/api.go
"""

from __future__ import annotations

from evm.headers import Header
from jsonrpc.later import Later, if_found
from jsonrpc.params import Param
from nodeapi.documents.blocks import header_document
from nodeapi.documents.pending import PendingBlock, pending_header
from nodeapi.encoding import block_number, data, hash32, index
from nodeapi.methods.catalog import registry
from nodeapi.methods.context import Context
from nodeapi.results.answers import Document
from nodeapi.schemas.blocks import HEADER_OR_NULL
from nodeapi.schemas.building import named
from nodeapi.schemas.values import BLOCK_NUMBER_OR_TAG, DATA, HASH32, QUANTITY

_BLOCK_HASH = Param("blockHash", hash32, HASH32)
_BLOCK_NUMBER = Param("block", block_number, BLOCK_NUMBER_OR_TAG)
_INDEX = Param("transactionIndex", index, QUANTITY)


def _data_or_nothing(value: bytes | None) -> bytes:
    """Return bytes as a JSON string, `"0x"` for None, as geth does."""
    return data(value or b"")


@registry.method(
    "eth_getHeaderByHash",
    params=[_BLOCK_HASH],
    result=named("header", HEADER_OR_NULL),
    summary="Returns the header of the block with a hash, null when there is none.",
)
def get_header_by_hash(context: Context, block_hash: bytes) -> Document:
    """Return the header of a block, canonical or not."""
    return context.store.header(context.network.id, block_hash).then(_document)


@registry.method(
    "eth_getHeaderByNumber",
    params=[_BLOCK_NUMBER],
    result=named("header", HEADER_OR_NULL),
    summary="Returns the header of the block with a number or tag, null when there is "
    "none.",
)
def get_header_by_number(context: Context, number_or_tag: int | str) -> Document:
    """Return the header of a canonical block, or of the pending block of an upstream."""
    network, relay = context.network, context.pending
    if number_or_tag == "pending" and relay is not None:
        pending = Later.from_coroutine(relay.pending_block(network, context.payer))
        return pending.then(_pending_document)
    return if_found(
        context.store.canonical_hash(network.id, number_or_tag),
        lambda block_hash: get_header_by_hash(context, block_hash),
    )


@registry.method(
    "eth_getRawTransactionByHash",
    params=[Param("transactionHash", hash32, HASH32)],
    encode=_data_or_nothing,
    result=named("transaction", DATA),
    summary="Returns the transaction with a hash as EIP-2718 encodes it. It may be "
    "pending, as for eth_getTransactionByHash. A pending blob transaction includes its "
    "sidecar.",
)
def get_raw_transaction_by_hash(
    context: Context, transaction_hash: bytes
) -> Later[bytes | None]:
    """Return a transaction of the canonical chain, a pending one, or None."""
    network, relay = context.network, context.relay
    found = context.store.raw_transaction(network.id, transaction_hash)
    if relay is None:
        return found

    def look_further(raw: bytes | None) -> Later[bytes | None]:
        if raw is not None:
            return Later(raw)
        return Later.from_coroutine(
            relay.pending_raw_transaction(network, transaction_hash, context.payer)
        )

    return found.then(look_further)


@registry.method(
    "eth_getRawTransactionByBlockHashAndIndex",
    params=[_BLOCK_HASH, _INDEX],
    encode=_data_or_nothing,
    result=named("transaction", DATA),
    summary="Returns the transaction at a position in a block as EIP-2718 encodes it.",
)
def get_raw_transaction_by_block_hash_and_index(
    context: Context, block_hash: bytes, transaction_index: int
) -> Later[bytes | None]:
    """Return a transaction of a block, canonical or not, or None."""
    return context.store.raw_transaction_at(
        context.network.id, block_hash, transaction_index
    )


@registry.method(
    "eth_getRawTransactionByBlockNumberAndIndex",
    params=[_BLOCK_NUMBER, _INDEX],
    encode=_data_or_nothing,
    result=named("transaction", DATA),
    summary="Returns the transaction at a position in a block as EIP-2718 encodes it.",
)
def get_raw_transaction_by_block_number_and_index(
    context: Context, number_or_tag: int | str, transaction_index: int
) -> Later[bytes | None]:
    """Return a transaction of a canonical block, or None."""
    store, network_id = context.store, context.network.id
    return if_found(
        store.canonical_hash(network_id, number_or_tag),
        lambda block_hash: store.raw_transaction_at(
            network_id, block_hash, transaction_index
        ),
    )


def _document(header: Header | None) -> bytes | None:
    return None if header is None else header_document(header)


def _pending_document(block: PendingBlock | None) -> bytes | None:
    return None if block is None else pending_header(block)
