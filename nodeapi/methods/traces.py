"""Traces of blocks and transactions, whatever the tracer, with geth's errors.

Three kinds of tracers are answered alike: those whose answer is stored, those whose
answer is made of what is stored, and those for which the block is executed again.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Coroutine
from dataclasses import replace

from jsonrpc.errors import ServiceUnavailable
from jsonrpc.stream import Stream
from nodeapi import conf
from nodeapi.encoding import BlockReference
from nodeapi.errors import (
    BlockNotFound,
    GenesisNotTraceable,
    HeaderForHashNotFound,
    NotCanonical,
    TransactionNotFound,
)
from nodeapi.methods.context import Context
from nodeapi.methods.trace_options import TraceOptions
from nodeapi.ports import Answer, MaybeAnswer, Place, RecordKind, TraceSizes
from nodeapi.store.base import settled
from nodeapi.tracers.native import CALL, PRESTATE, NativeTracer, derivation
from nodeapi.tracing.jobs import TraceJob

_NO_ENTRIES = b"[]"

_LONG_BYTES = {"calls": 2**20, "prestate": 2**23}
"""Of a single transaction's default answers, for which some ten milliseconds are spent
on a derived one. What makes `prestate` long is code, mostly, which takes no time."""

_AS_STORED: dict[NativeTracer, RecordKind] = {
    NativeTracer(CALL): "calls",
    NativeTracer(PRESTATE): "prestate",
}


def trace_block(
    context: Context, block_hash: bytes, options: TraceOptions
) -> MaybeAnswer:
    """Return an entry for each transaction of a block, canonical or not.

    Raises, now or when awaited: BlockNotFound, GenesisNotTraceable, TraceTooLarge, what
    `nodeapi.tracing.errors` has; TracerNotAvailable, TracerNotEntitled.
    """
    require_tracers(context, options)
    answer = block_answer(context, block_hash, options)
    if type(answer) is bytes and answer != _NO_ENTRIES:
        return answer
    return _found(context, block_hash, answer)


def trace_transaction(
    context: Context, transaction_hash: bytes, options: TraceOptions
) -> MaybeAnswer:
    """Return the answer for a transaction of the canonical chain.

    Raises, now or when awaited: TransactionNotFound; what `trace_block` raises.
    """
    require_tracers(context, options)
    place = context.store.find_transaction(context.network.id, transaction_hash)
    if isinstance(place, Place):
        answer = _transaction(context, place, options)
        return answer if type(answer) is bytes else _existing(answer)
    return _at_place(context, place, options)


def require_tracers(context: Context, options: TraceOptions) -> None:
    """Raise the error of a tracer that is not for this network or this key."""
    for name in options.names:
        context.require_tracer(name)


def block_answer(
    context: Context, block_hash: bytes, options: TraceOptions
) -> MaybeAnswer:
    """Return a block's answer as it is, None when there is no such block."""
    tracer, first, last = options.tracer, options.first, options.last
    store, network_id = context.store, context.network.id
    if not isinstance(tracer, NativeTracer):
        return _execute(context, _job(context, block_hash, options, first, last))
    kind = _AS_STORED.get(tracer)
    if kind is not None:
        return store.block_trace(network_id, block_hash, kind, first, last)
    answer = store.derived_block_trace(
        network_id, block_hash, derivation(tracer), first, last
    )
    if answer is None or isinstance(answer, bytes | Stream):
        return answer
    return _derive(context, answer, _job(context, block_hash, options, first, last))


def _transaction(context: Context, place: Place, options: TraceOptions) -> MaybeAnswer:
    """Return a transaction's answer as it is, None when there is no such place."""
    tracer, index = options.tracer, place.index
    store, network_id = context.store, context.network.id
    if not isinstance(tracer, NativeTracer):
        return _execute(context, _single(context, place, options))
    kind = _AS_STORED.get(tracer)
    if kind is not None:
        return store.transaction_trace(network_id, place.block_hash, index, kind)
    answer = store.derived_transaction_trace(
        network_id, place.block_hash, index, derivation(tracer)
    )
    if answer is None or isinstance(answer, bytes | Stream):
        return answer
    return _derive(context, answer, _single(context, place, options))


def _job(
    context: Context, block_hash: bytes, options: TraceOptions, first: int, last: int
) -> TraceJob:
    """Return the job of tracing a part of a block, for a worker process."""
    return TraceJob(
        network_id=context.network.id,
        block_hash=block_hash,
        tracer=options.tracer,
        timeout=conf.trace_timeout() if options.timeout is None else options.timeout,
        first=first,
        last=last,
    )


def _single(context: Context, place: Place, options: TraceOptions) -> TraceJob:
    job = _job(context, place.block_hash, options, place.index, place.index)
    return replace(job, is_single=True)


async def _execute(context: Context, job: TraceJob) -> Answer:
    """Have a worker process do a job.

    The calls of a batch take turns: they would use up what a key may have at once.
    """
    if context.tracing is None:
        raise ServiceUnavailable
    async with context.turn:
        return await context.tracing.trace(job, context.grant.api_key_id)


async def _derive(
    context: Context, answer: Awaitable[Answer | None], job: TraceJob
) -> Answer | None:
    """Have an answer made of records here, or where nobody waits for it if it is long.

    What a transaction has too much of would hold the event loop up, even in a thread.
    """
    try:
        sizes = await context.store.trace_sizes(
            job.network_id, job.block_hash, job.first, job.last
        )
        if sizes is None or not _is_long(sizes, job.tracer) or context.tracing is None:
            return await answer
    finally:
        if isinstance(answer, Coroutine):
            answer.close()  # in case it has not begun
    # A time-out is for what is executed, and nothing is.
    return await _execute(context, replace(job, timeout=math.inf))


def _is_long(sizes: TraceSizes, tracer: object) -> bool:
    """Return whether a transaction's answer may take long to be derived."""
    assert isinstance(tracer, NativeTracer)
    totals = {"calls": sizes.calls, "prestate": sizes.prestate}
    return any(
        min(totals[kind], sizes.largest) > _LONG_BYTES[kind]
        for kind in derivation(tracer).needs
    )


async def _found(context: Context, block_hash: bytes, answer: MaybeAnswer) -> Answer:
    """Return a block's answer, if there is a block that can have one."""
    answer = await settled(answer)
    if answer is None:
        raise BlockNotFound(block_hash)
    if answer == _NO_ENTRIES and await _is_genesis(context, block_hash):
        raise GenesisNotTraceable
    return answer


async def _is_genesis(context: Context, block_hash: bytes) -> bool:
    document = await settled(
        context.store.block_by_hash(context.network.id, block_hash, False, False)
    )
    return document is not None and b'"number":"0x0"' in document


async def _at_place(
    context: Context, place: Awaitable[Place | None], options: TraceOptions
) -> Answer:
    """Return the answer for a transaction that has to be looked for."""
    found = await place
    if found is None:
        raise TransactionNotFound
    return await _existing(_transaction(context, found, options))


async def _existing(answer: MaybeAnswer) -> Answer:
    """Return the answer for a transaction that was found."""
    found = await settled(answer)
    if found is None:  # its block has gone since
        raise TransactionNotFound
    return found


async def named_block(context: Context, block: BlockReference) -> bytes | None:
    """Return the hash of the block that a parameter names, None when there is none.

    A hash may be that of a block which is not there, unless it has to be canonical.
    """
    store, network_id = context.store, context.network.id
    if block.require_canonical:
        try:
            await store.resolve_state(network_id, block)
        except (HeaderForHashNotFound, NotCanonical):
            return None
    if block.hash is not None:
        return block.hash
    number_or_tag = block.tag or block.number or 0
    return await settled(store.canonical_hash(network_id, number_or_tag))
