"""Traces of blocks and transactions by all tracers, with geth's errors.

There are three kinds of tracers: those whose result is stored, those whose result is
derived from trace records, and those that need another execution of the block.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from django.conf import settings

from evm.tracers.native import CALL, PRESTATE, NativeTracer, derivation
from jsonrpc.errors import ServiceUnavailable
from jsonrpc.later import DONE, Later, if_found
from nodeapi.encoding import MAX_INDEX, BlockReference
from nodeapi.errors.blocks import (
    HeaderForHashNotFound,
    HistoryPruned,
    NotCanonical,
)
from nodeapi.errors.traces import (
    BlockNotFound,
    GenesisNotTraceable,
    TransactionNotFound,
)
from nodeapi.methods.context import Context
from nodeapi.methods.trace_options import TraceOptions
from nodeapi.methods.tracing_tasks import run_trace, trace_seconds
from nodeapi.results.answers import Answer, MaybeAnswer
from nodeapi.store.derived import TraceSizes
from nodeapi.store.record_queries import RecordKind
from nodeapi.store.transactions import Place
from nodeapi.tracing.jobs import TraceJob, tracer_to_json

_NO_ENTRIES = b"[]"

_LONG_BYTES = {"calls": 2**20, "prestate": 2**23}
"""Sizes of a transaction's default results above which a derived result is computed in
a worker process. Below, it takes about ten milliseconds at most. `prestate` consists
mostly of code, which takes no time."""

_AS_STORED: dict[NativeTracer, RecordKind] = {
    NativeTracer(CALL): "calls",
    NativeTracer(PRESTATE): "prestate",
}


def trace_block(
    context: Context, block_hash: bytes, options: TraceOptions
) -> Later[Answer]:
    """Return an entry for each transaction of a block, canonical or not.

    Fails with BlockNotFound, GenesisNotTraceable, TraceTooLarge, or an error of
    `nodeapi.errors.execution`. Raises: TracerNotAvailable, TracerNotEntitled.
    """
    require_tracers(context, options)
    answer = block_answer(context, block_hash, options)
    return answer.then(partial(_existing_block, context, block_hash))


def trace_transaction(
    context: Context, transaction_hash: bytes, options: TraceOptions
) -> Later[Answer]:
    """Return the result for a transaction of the canonical chain.

    Fails with TransactionNotFound, and as `trace_block`. Raises: as `trace_block`.
    """
    require_tracers(context, options)
    return transaction_answer(context, transaction_hash, options)


def transaction_answer(
    context: Context, transaction_hash: bytes, options: TraceOptions
) -> Later[Answer]:
    """Return the result for a canonical transaction, without a check of the key.

    Fails as `trace_transaction`.
    """
    place = context.store.find_transaction(context.network.id, transaction_hash)

    def answer(found: Place) -> MaybeAnswer:
        untraced = context.store.is_untraced(
            context.network, found.block_hash, is_recorded=_is_recorded(options)
        )
        return untraced.then(
            lambda is_untraced: (
                _untraced(
                    *(context, found.block_hash),
                    replace(options, first=found.index, last=found.index),
                    is_single=True,
                )
                if is_untraced
                else _transaction(context, found, options)
            )
        )

    return if_found(place, answer).then(_existing_transaction)


def require_tracers(context: Context, options: TraceOptions) -> None:
    """Check that the network and the key permit all tracers of a request.

    Raises: TracerNotAvailable, TracerNotEntitled.
    """
    for name in options.names:
        context.require_tracer(name)


def block_answer(
    context: Context, block_hash: bytes, options: TraceOptions
) -> MaybeAnswer:
    """Return a block's result, or None if there is no such block.

    Fails with HistoryPruned if the block was not executed, and can't be.
    """
    untraced = context.store.is_untraced(
        context.network, block_hash, is_recorded=_is_recorded(options)
    )
    return untraced.then(
        lambda is_untraced: (
            _untraced(context, block_hash, options, is_single=False)
            if is_untraced
            else _block_answer(context, block_hash, options)
        )
    )


def _untraced(
    context: Context, block_hash: bytes, options: TraceOptions, *, is_single: bool
) -> Later[Answer]:
    """Return the result of a block that was only proved, by executing it.

    What it reads is proved by upstreams, and the trace is not stored.
    is_single: whether it is that of the transaction `first` alone.

    Fails with HistoryPruned if no upstream proves what it reads.
    """
    if options.fork is not None:
        return Later.failed(HistoryPruned((context.network.checkpoint_number or 0) + 1))
    arguments = {
        "tracer": tracer_to_json(options.tracer),
        "seconds": trace_seconds(options),
        "first": options.first,
        "last": options.last,
        "is_single": is_single,
    }
    return Later.from_coroutine(
        run_trace(context, "traceStored", block_hash, arguments, options)
    )


def _is_recorded(options: TraceOptions) -> bool:
    """Return whether an answer comes from trace records, without an execution."""
    return isinstance(options.tracer, NativeTracer) and options.fork is None


def _block_answer(
    context: Context, block_hash: bytes, options: TraceOptions
) -> MaybeAnswer:
    tracer, first, last = options.tracer, options.first, options.last
    store, network_id = context.store, context.network.id
    if not isinstance(tracer, NativeTracer):
        job = _job(context, block_hash, options, first, last)
        return Later.from_coroutine(_execute(context, job))
    kind = _AS_STORED.get(tracer)
    if kind is not None:
        return store.block_trace(network_id, block_hash, kind, first, last)
    derived = derivation(tracer)
    if first == 0 and last == MAX_INDEX:
        cached = store.cached_derived_trace(network_id, block_hash, derived)
        if cached is not None:
            return Later(cached)

    def derive() -> MaybeAnswer:
        owner = context.customer
        return store.derived_block_trace(
            network_id, block_hash, derived, first, last, owner=owner
        )

    job = _job(context, block_hash, options, first, last)
    return Later.from_coroutine(_derive(context, derive, job))


def _transaction(context: Context, place: Place, options: TraceOptions) -> MaybeAnswer:
    """Return a transaction's answer, or None if its block was removed."""
    tracer, index = options.tracer, place.index
    store, network_id = context.store, context.network.id
    if not isinstance(tracer, NativeTracer) or options.fork is not None:
        job = _single(context, place, options)
        return Later.from_coroutine(_execute(context, job))
    block_hash = place.block_hash
    kind = _AS_STORED.get(tracer)
    if kind is not None:
        return store.transaction_trace(network_id, block_hash, index, kind)
    derived = derivation(tracer)
    cached = store.cached_derived_trace(network_id, block_hash, derived, index)
    if cached is not None:
        return Later(cached)

    def derive() -> MaybeAnswer:
        owner = context.customer
        return store.derived_transaction_trace(
            network_id, block_hash, index, derived, owner=owner
        )

    job = _single(context, place, options)
    return Later.from_coroutine(_derive(context, derive, job))


def _job(
    context: Context, block_hash: bytes, options: TraceOptions, first: int, last: int
) -> TraceJob:
    """Return the job of tracing a part of a block, for a worker process."""
    return TraceJob(
        network_id=context.network.id,
        block_hash=block_hash,
        tracer=options.tracer,
        timeout=settings.NODEAPI_TRACE_TIMEOUT
        if options.timeout is None
        else options.timeout,
        first=first,
        last=last,
        fork=options.fork,
    )


def _single(context: Context, place: Place, options: TraceOptions) -> TraceJob:
    job = _job(context, place.block_hash, options, place.index, place.index)
    return replace(job, is_single=True)


async def _execute(context: Context, job: TraceJob) -> Answer:
    """Execute a job in a worker process.

    The calls of a batch are executed one after the other, so that one request occupies
    one worker. The lock identifies the request, whose calls count as one trace of the
    key.
    """
    if context.tracing is None:
        raise ServiceUnavailable
    async with context.turn:
        return await context.tracing.trace(
            job,
            context.executor,
            owner=context.customer,
            request=context.turn,
            spent=context.charge_time,
        )


async def _derive(
    context: Context, derive: Callable[[], MaybeAnswer], job: TraceJob
) -> Answer | None:
    """Derive a result from trace records, in a worker process if it is long.

    Very long results would block the event loop, even from a thread.
    """
    sizes = await context.store.trace_sizes(
        job.network_id, job.block_hash, job.first, job.last
    )
    if sizes is None or not _is_long(sizes, job.tracer) or context.tracing is None:
        return await derive()
    # The timeout is for executions, and nothing is executed.
    return await _execute(context, replace(job, timeout=math.inf))


def _is_long(sizes: TraceSizes, tracer: object) -> bool:
    """Return whether a transaction's answer may take long to be derived."""
    assert isinstance(tracer, NativeTracer)
    totals = {"calls": sizes.calls, "prestate": sizes.prestate}
    return any(
        min(totals[kind], sizes.largest) > _LONG_BYTES[kind]
        for kind in derivation(tracer).needs
    )


def _existing_block(
    context: Context, block_hash: bytes, answer: Answer | None
) -> Later[Answer]:
    """Return a block's answer. Raises: BlockNotFound. Fails with GenesisNotTraceable."""
    if answer is None:
        raise BlockNotFound(block_hash)
    if answer != _NO_ENTRIES:
        return Later(answer)

    def unless_genesis(document: bytes | None) -> Answer:
        if document is not None and b'"number":"0x0"' in document:
            raise GenesisNotTraceable
        return _NO_ENTRIES

    block = context.store.block_by_hash(context.network.id, block_hash, False, False)
    return block.then(unless_genesis)


def _existing_transaction(answer: Answer | None) -> Answer:
    """Return a transaction's answer. Raises: TransactionNotFound."""
    if answer is None:
        raise TransactionNotFound
    return answer


def named_block(context: Context, block: BlockReference) -> Later[bytes | None]:
    """Return the hash of the block that a parameter names, or None if there is none.

    A hash is returned without a look-up, unless the block has to be canonical.
    """
    store, network_id = context.store, context.network.id
    if block.hash is None:
        return store.canonical_hash(network_id, block.tag or block.number or 0)
    if not block.require_canonical:
        return Later(block.hash)
    return store.state_hash(network_id, block).handle(
        partial(_hash_if_canonical, block.hash)
    )


def _hash_if_canonical(block_hash: bytes, state: Later[object]) -> Later[bytes | None]:
    if isinstance(state.error, HeaderForHashNotFound | NotCanonical):
        return DONE
    if state.error is not None:
        return Later.failed(state.error)
    return Later(block_hash)
