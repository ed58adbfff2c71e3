"""`debug_`: traces, and blocks and transactions as they were signed and sealed.

Source: go-ethereum eth/tracers/api.go, internal/ethapi/api.go
"""

from __future__ import annotations

from collections.abc import Awaitable

from jsonrpc.params import Param
from nodeapi import schemas
from nodeapi.encoding import (
    BlockReference,
    block_number,
    block_number_or_hash,
    data,
    hash32,
)
from nodeapi.errors import BlockNotFound
from nodeapi.evm import rlp
from nodeapi.methods import traces
from nodeapi.methods.catalog import registry
from nodeapi.methods.context import TRACE, Context
from nodeapi.methods.trace_options import DEFAULT, TraceOptions, trace_options
from nodeapi.ports import Answer, MaybeAnswer
from nodeapi.store.base import settled

_OPTIONS = Param(
    "options",
    trace_options,
    schemas.TRACE_OPTIONS,
    required=False,
    default=DEFAULT,
    summary="Which tracer, and what it is to show; the struct logger by default.",
)
_BLOCK = Param("block", block_number_or_hash, schemas.BLOCK_PARAMETER)
_TRANSACTION_HASH = Param("transactionHash", hash32, schemas.HASH32)


@registry.method(
    "debug_traceBlockByHash",
    params=[Param("blockHash", hash32, schemas.HASH32), _OPTIONS],
    result=schemas.named("traces", schemas.BLOCK_TRACES),
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
    params=[Param("block", block_number, schemas.BLOCK_NUMBER_OR_TAG), _OPTIONS],
    result=schemas.named("traces", schemas.BLOCK_TRACES),
    summary="Returns the traces of all transactions of the block with a number or tag.",
    credits=20,
    capability=TRACE,
    is_slow=True,
)
def trace_block_by_number(
    context: Context, number_or_tag: int | str, options: TraceOptions
) -> MaybeAnswer:
    """Return the traces of a canonical block."""
    # Before the block is looked for: nobody would wait for what is found.
    traces.require_tracers(context, options)
    block_hash = context.store.canonical_hash(context.network.id, number_or_tag)
    if isinstance(block_hash, bytes):
        return traces.trace_block(context, block_hash, options)
    return _trace_block_later(context, number_or_tag, block_hash, options)


async def _trace_block_later(
    context: Context,
    number_or_tag: int | str,
    block_hash: bytes | Awaitable[bytes | None] | None,
    options: TraceOptions,
) -> Answer | None:
    found = await settled(block_hash)
    if found is None:
        raise BlockNotFound(number_or_tag)
    return await settled(traces.trace_block(context, found, options))


@registry.method(
    "debug_traceTransaction",
    params=[_TRANSACTION_HASH, _OPTIONS],
    result=schemas.named("trace", schemas.TRACE),
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
    result=schemas.named("block", schemas.DATA),
    summary="Returns the RLP of a block.",
)
async def get_raw_block(context: Context, block: BlockReference) -> bytes:
    """Return a block as it travels; nothing where no block has the number."""
    return await _raw_block(context, block)


@registry.method(
    "debug_getRawHeader",
    params=[_BLOCK],
    encode=data,
    result=schemas.named("header", schemas.DATA),
    summary="Returns the RLP of a block's header.",
)
async def get_raw_header(context: Context, block: BlockReference) -> bytes:
    """Return what a block's hash is of; nothing where no block has the number."""
    raw = await _raw_block(context, block)
    return rlp.list_items(raw)[0] if raw else b""


@registry.method(
    "debug_getRawTransaction",
    params=[_TRANSACTION_HASH],
    encode=data,
    result=schemas.named("transaction", schemas.DATA),
    summary="Returns the transaction with a hash as EIP-2718 encodes it.",
)
async def get_raw_transaction(context: Context, transaction_hash: bytes) -> bytes:
    """Return a transaction of the canonical chain; nothing where there is none."""
    store, network_id = context.store, context.network.id
    return await store.raw_transaction(network_id, transaction_hash) or b""


async def _raw_block(context: Context, block: BlockReference) -> bytes:
    """Return a block's RLP, and geth's nothing where no block has the number.

    Raises: BlockNotFound for a hash that is no block's.
    """
    block_hash = await traces.named_block(context, block)
    if block_hash is None:
        return b""
    raw = await context.store.raw_block(context.network.id, block_hash)
    if raw is None:
        raise BlockNotFound(block_hash)
    return raw
