"""`debug_`: traces, and the RLP of blocks, headers and transactions.

Source: go-ethereum eth/tracers/api.go, internal/ethapi/api.go
"""

from __future__ import annotations

from evm import rlp
from jsonrpc.later import Later, if_found
from jsonrpc.params import Param
from nodeapi.encoding import (
    BlockReference,
    block_number,
    block_number_or_hash,
    data,
    hash32,
)
from nodeapi.errors.blocks import RawNotFound
from nodeapi.errors.traces import BlockNotFound
from nodeapi.methods import traces
from nodeapi.methods.catalog import registry
from nodeapi.methods.context import TRACE, Context
from nodeapi.methods.eth_headers import get_raw_transaction_by_hash
from nodeapi.methods.trace_options import (
    OPTIONS,
    TRANSACTION_OPTIONS,
    TraceOptions,
)
from nodeapi.results.answers import Answer, MaybeAnswer
from nodeapi.schemas.blocks import BAD_BLOCKS
from nodeapi.schemas.building import named
from nodeapi.schemas.logs import RAW_RECEIPTS_OR_NULL
from nodeapi.schemas.traces import BLOCK_TRACES, TRACER_RESULT
from nodeapi.schemas.values import BLOCK_NUMBER_OR_TAG, BLOCK_PARAMETER, DATA, HASH32

_BLOCK = Param("block", block_number_or_hash, BLOCK_PARAMETER)
_TRANSACTION_HASH = Param("transactionHash", hash32, HASH32)


@registry.method(
    "debug_traceBlockByHash",
    params=[Param("blockHash", hash32, HASH32), OPTIONS],
    result=named("traces", BLOCK_TRACES),
    summary="Returns the traces of all transactions of the block with a hash.",
    credits=20,
    capability=TRACE,
    is_slow=True,
)
def trace_block_by_hash(
    context: Context, block_hash: bytes, options: TraceOptions
) -> MaybeAnswer:
    """Return the traces of a block, canonical or not."""
    return traces.trace_block(context, block_hash, options)


@registry.method(
    "debug_traceBlockByNumber",
    params=[Param("block", block_number, BLOCK_NUMBER_OR_TAG), OPTIONS],
    result=named("traces", BLOCK_TRACES),
    summary="Returns the traces of all transactions of the block with a number or tag.",
    credits=20,
    capability=TRACE,
    is_slow=True,
)
def trace_block_by_number(
    context: Context, number_or_tag: int | str, options: TraceOptions
) -> MaybeAnswer:
    """Return the traces of a canonical block."""
    # Before the block is looked up: its absence does not matter to callers without access.
    traces.require_tracers(context, options)

    def trace(block_hash: bytes | None) -> Later[Answer]:
        if block_hash is None:
            raise BlockNotFound(number_or_tag)
        return traces.trace_block(context, block_hash, options)

    return context.store.canonical_hash(context.network.id, number_or_tag).then(trace)


@registry.method(
    "debug_traceTransaction",
    params=[_TRANSACTION_HASH, TRANSACTION_OPTIONS],
    result=named("trace", TRACER_RESULT),
    summary="Returns the trace of the transaction with a hash.",
    credits=10,
    capability=TRACE,
    is_slow=True,
)
def trace_transaction(
    context: Context, transaction_hash: bytes, options: TraceOptions
) -> MaybeAnswer:
    """Return the trace of a transaction of the canonical chain."""
    return traces.trace_transaction(context, transaction_hash, options)


@registry.method(
    "debug_getRawBlock",
    params=[_BLOCK],
    encode=data,
    result=named("block", DATA),
    summary="Returns the RLP of a block.",
)
def get_raw_block(context: Context, block: BlockReference) -> Later[bytes]:
    """Return a block's RLP, empty if no block has the number.

    Fails with RawNotFound for an unknown hash.
    """
    return _raw_block(context, block, "block")


@registry.method(
    "debug_getRawHeader",
    params=[_BLOCK],
    encode=data,
    result=named("header", DATA),
    summary="Returns the RLP of a block's header.",
)
def get_raw_header(context: Context, block: BlockReference) -> Later[bytes]:
    """Return a header's RLP, empty if no block has the number.

    Fails with RawNotFound for an unknown hash.
    """
    raw = _raw_block(context, block, "header")
    return raw.then(lambda found: rlp.list_items(found)[0] if found else b"")


@registry.method(
    "debug_getRawReceipts",
    params=[_BLOCK],
    result=named("receipts", RAW_RECEIPTS_OR_NULL),
    summary="Returns the receipts of a block as EIP-2718 encodes them, null when no "
    "block has the number.",
    credits=10,
)
def get_raw_receipts(context: Context, block: BlockReference) -> MaybeAnswer:
    """Return the receipts of a block, canonical or not, in order.

    The list is empty for an unknown hash. Like geth, `requireCanonical` is ignored.
    """
    store, network_id = context.store, context.network.id

    def read(block_hash: bytes) -> MaybeAnswer:
        owner = context.customer
        return store.raw_receipts(network_id, block_hash, owner=owner)

    if block.hash is not None:
        return read(block.hash).then(lambda found: b"[]" if found is None else found)
    return if_found(traces.named_block(context, block), read)


@registry.method(
    "debug_getRawTransaction",
    params=[_TRANSACTION_HASH],
    encode=data,
    result=named("transaction", DATA),
    summary="Returns the transaction with a hash as EIP-2718 encodes it. It may be "
    "pending, as for eth_getRawTransactionByHash.",
)
def get_raw_transaction(context: Context, transaction_hash: bytes) -> Later[bytes]:
    """Return a transaction of the canonical chain, a pending one, or nothing."""
    raw = get_raw_transaction_by_hash(context, transaction_hash)
    return raw.then(lambda found: found or b"")


@registry.method(
    "debug_getBadBlocks",
    result=named("blocks", BAD_BLOCKS),
    summary="Returns an empty list: invalid blocks are not kept.",
)
def get_bad_blocks(context: Context) -> bytes:
    """Return no blocks. Invalid blocks of upstreams are not stored."""
    return b"[]"


def _raw_block(context: Context, block: BlockReference, kind: str) -> Later[bytes]:
    """Return a block's RLP, empty if no block has the number.

    kind: `block` or `header`, for the error. Like geth, `requireCanonical` is ignored.
    Fails with RawNotFound for an unknown hash.
    """
    store, network_id = context.store, context.network.id

    def read(block_hash: bytes | None) -> Later[bytes]:
        if block_hash is None:
            return Later(b"")
        return store.raw_block(network_id, block_hash).then(
            lambda raw: _existing(raw, kind, block_hash)
        )

    if block.hash is not None:
        return read(block.hash)
    return traces.named_block(context, block).then(read)


def _existing(raw: bytes | None, kind: str, block_hash: bytes) -> bytes:
    if raw is None:
        raise RawNotFound(kind, block_hash)
    return raw
