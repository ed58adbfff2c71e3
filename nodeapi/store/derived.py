"""Results of the tracers that read trace records instead of executing blocks.

They are computed transaction by transaction. Short results are cached. Long ones are
spooled to a file, because their length is not known in advance.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Hashable
from dataclasses import dataclass

from evm.tracers.derived import (
    CALLS,
    PRESTATE,
    Derivation,
    RecordedTransaction,
    code_hashes,
)
from evm.tracers.record import RecordTooLarge
from jsonrpc.later import DONE, Later
from nodeapi.encoding import MAX_INDEX
from nodeapi.errors.traces import TraceTooLarge
from nodeapi.results import entries
from nodeapi.results.answers import Answer
from nodeapi.results.spool import Spool
from nodeapi.store import record_queries
from nodeapi.store.base import CacheKey, Sources, whole_row
from nodeapi.store.trace_streams import ADVICE, Span, groups, record_name
from nodeapi.store.traces import SHORT_BYTES, TraceReads
from postgres.errors import Unavailable
from postgres.lookup import Lookup
from postgres.statement import (
    BYTEA,
    INT8,
    Row,
    Statement,
    int8,
    read_array,
    read_int8,
    read_int8_array,
)

HEAVY_BYTES = 2**14
"""Weight from which a transaction's result is computed in a thread. Unpacking may
increase a record's size tenfold, and the computation would block the event loop."""

TURN_SECONDS = 0.004
"""Longest computation before other tasks of the event loop may run."""

_GROUP = Statement(record_queries.RECORDS_GROUP, [INT8.oid] * 5)

_Key = tuple[int, bytes, int, int]
"""Network, hash of the block, first and last transaction."""


@dataclass(frozen=True, slots=True)
class TraceSizes:
    """Sizes of a block's trace results."""

    transactions: int
    """Number of the block's transactions."""
    calls: int
    """Bytes of callTracer's results for the requested transactions."""
    prestate: int
    """Bytes of prestateTracer's results for the requested transactions."""
    largest: int
    """Size in bytes of the longest result for a single transaction, of either tracer.
    """


class DerivedReads(TraceReads):
    """Reads of results that are computed from trace records.

    All results fail with TraceTooLarge or Unavailable, like those of `TraceReads`.
    """

    def __init__(self, sources: Sources) -> None:
        super().__init__(sources)
        key = [("network_id", INT8), ("hash", BYTEA), ("first", INT8), ("last", INT8)]
        self._trace_sizes: Lookup[_Key, Row] = Lookup(
            sources.connections,
            record_queries.TRACE_SIZES,
            key,
            whole_row,
            max_batch=16,
        )
        self._records_plans: Lookup[tuple[int, bytes, int, int, int, int], Row] = (
            Lookup(
                sources.connections,
                record_queries.RECORDS_PLAN,
                [*key, ("calls", INT8), ("prestate", INT8)],
                whole_row,
                max_batch=16,
                is_immutable=True,
            )
        )

    def trace_sizes(
        self, network_id: int, block_hash: bytes, first: int = 0, last: int = MAX_INDEX
    ) -> Later[TraceSizes | None]:
        """Return the number of a block's transactions, and the sizes of their results.

        None if there is no such block.
        """
        key = (network_id, block_hash, first, last)
        return Later.from_future(self._trace_sizes.get(key)).then(_sizes)

    def cached_derived_trace(
        self,
        network_id: int,
        block_hash: bytes,
        derivation: Derivation,
        index: int | None = None,
    ) -> bytes | None:
        """Return the cached result for a block or for one of its transactions, or None.

        index: the transaction's index, or None for the block.
        """
        return self._cache.get(_cache_key(network_id, block_hash, derivation, index))

    def derived_block_trace(
        self,
        network_id: int,
        block_hash: bytes,
        derivation: Derivation,
        first: int = 0,
        last: int = MAX_INDEX,
        *,
        owner: Hashable = None,
    ) -> Later[Answer | None]:
        """Return a block's entries: `[{"txHash":"0x…","result":…},…]`.

        last may exceed the block's last index. Fails with TraceTooLarge for a transaction
        whose trace record would have exceeded the limit.

        owner: the account that a long result counts for until it has been read.
        """
        cache_key = None
        if first == 0 and last == MAX_INDEX:
            cache_key = _cache_key(network_id, block_hash, derivation)
            cached = self._cache.get(cache_key)
            if cached is not None:
                return Later(cached)
        key = (network_id, block_hash, first, min(last, MAX_INDEX))
        return Later.from_coroutine(
            self._derive_block(key, derivation, cache_key, owner)
        )

    def derived_transaction_trace(
        self,
        network_id: int,
        block_hash: bytes,
        index: int,
        derivation: Derivation,
        *,
        owner: Hashable = None,
    ) -> Later[Answer | None]:
        """Return one transaction's result, or None if the block does not contain it."""
        if index > MAX_INDEX:
            return DONE
        cache_key = _cache_key(network_id, block_hash, derivation, index)
        cached = self._cache.get(cache_key)
        if cached is not None:
            return Later(cached)
        key = (network_id, block_hash, index, index)
        return Later.from_coroutine(
            self._derive_transaction(key, derivation, cache_key, owner)
        )

    async def _derive_block(
        self,
        key: _Key,
        derivation: Derivation,
        cache_key: CacheKey | None,
        owner: Hashable,
    ) -> Answer | None:
        plan = await self._records_plan(key, derivation)
        if plan is None:
            return None
        spool = Spool(SHORT_BYTES, self.spooled, owner)
        try:
            separator = b"["
            async for recorded, result in self._derived(key, plan, derivation):
                spool.write(separator + entries.entry(recorded.hash, result))
                separator = b","
            spool.write(b"]" if separator == b"," else b"[]")
            return self._finish(spool, cache_key)
        except BaseException:
            spool.close()
            raise

    async def _derive_transaction(
        self, key: _Key, derivation: Derivation, cache_key: CacheKey, owner: Hashable
    ) -> Answer | None:
        plan = await self._records_plan(key, derivation)
        if plan is None or not plan[2]:
            return None
        spool = Spool(SHORT_BYTES, self.spooled, owner)
        try:
            async for _, result in self._derived(key, plan, derivation):
                spool.write(result)
            return self._finish(spool, cache_key)
        except BaseException:
            spool.close()
            raise

    def _finish(self, spool: Spool, cache_key: CacheKey | None) -> Answer:
        answer = spool.answer(ADVICE)
        if cache_key is not None and isinstance(answer, bytes):
            self._cache.put(cache_key, answer)
        return answer

    async def _records_plan(
        self, key: _Key, derivation: Derivation
    ) -> tuple[int, int, list[int]] | None:
        """Return the block's id, its number, and the size of each transaction's records.

        None if the block does not exist.
        """
        needs = derivation.needs
        row = await self._records_plans.get(
            (*key, int(CALLS in needs), int(PRESTATE in needs))
        )
        if row is None:
            return None
        block_id, number = (read_int8(column or b"") for column in row[:2])
        return block_id, number, read_int8_array(row[2] or b"")

    async def _derived(
        self, key: _Key, plan: tuple[int, int, list[int]], derivation: Derivation
    ) -> AsyncGenerator[tuple[RecordedTransaction, bytes], None]:
        """Yield each transaction with its answer."""
        loop = asyncio.get_running_loop()
        turn_ends = loop.time() + TURN_SECONDS
        async for recorded in self._recorded(key, plan, derivation.needs):
            try:
                result = await self._answer(recorded, derivation)
            except RecordTooLarge as error:
                raise TraceTooLarge(recorded.index) from error
            except ValueError as error:
                error.add_note(record_name(plan[0], recorded.index, derivation.name))
                raise
            yield recorded, result
            if loop.time() > turn_ends:
                await asyncio.sleep(0)
                turn_ends = loop.time() + TURN_SECONDS

    async def _answer(
        self, recorded: RecordedTransaction, derivation: Derivation
    ) -> bytes:
        weight = len(recorded.calls) + len(recorded.prestate) + len(recorded.details)
        is_heavy = weight > HEAVY_BYTES
        codes: dict[bytes, bytes] = {}
        if PRESTATE in derivation.needs:
            if is_heavy:
                hashes = await asyncio.to_thread(code_hashes, recorded)
            else:
                hashes = code_hashes(recorded)
            codes = await self._codes.get_all(hashes)
        if is_heavy:
            return await asyncio.to_thread(derivation.derive, recorded, codes)
        return derivation.derive(recorded, codes)

    async def _recorded(
        self, key: _Key, plan: tuple[int, int, list[int]], needs: frozenset[str]
    ) -> AsyncGenerator[RecordedTransaction, None]:
        """Yield transactions with their records, read a group at a time."""
        block_id, number, weights = plan
        with_records = [int8(CALLS in needs), int8(PRESTATE in needs)]
        for first, last, _ in groups(weights, key[2]):
            rows = await self._connections.fetch(
                _GROUP, [*Span(block_id, first, last).parameters(), *with_records]
            )
            if not rows:
                raise Unavailable("records have gone while they were read")
            columns = (read_array(column or b"") for column in rows[0])
            for index, members in enumerate(zip(*columns, strict=True), first):
                yield RecordedTransaction(key[1], number, index, *members)


def _cache_key(
    network_id: int, block_hash: bytes, derivation: Derivation, index: int | None = None
) -> CacheKey:
    """Return the key of an answer for a transaction, or for a block without an index."""
    return ("derived", derivation.name, network_id, block_hash, index)


def _sizes(row: Row | None) -> TraceSizes | None:
    if row is None:
        return None
    return TraceSizes(*(read_int8(column or b"") for column in row))
