"""Answers of the tracers that read records instead of executing anything.

They are made transaction by transaction, kept when they are short, and put into a file
when they are long: how long they will be nobody knows before.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from networks.directory import Directory
from nodeapi.encoding import MAX_INDEX
from nodeapi.errors import TraceTooLarge
from nodeapi.ports import (
    Answer,
    Derivation,
    MaybeAnswer,
    RecordedTransaction,
    TraceSizes,
)
from nodeapi.store import entries, record_queries
from nodeapi.store.base import CacheKey, whole_row
from nodeapi.store.spool import Spool
from nodeapi.store.trace_streams import ADVICE, Span, groups, record_name
from nodeapi.store.traces import SHORT_BYTES, TraceReads
from nodeapi.tracers.derived import CALLS, PRESTATE, code_hashes
from nodeapi.tracers.record import RecordTooLarge
from postgres.cache import BytesCache
from postgres.connections import Connections
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
"""Weight from which on a transaction's answer is made in a thread: more than this could
hold the event loop up, as a record may have grown tenfold when it is unpacked."""

TURN_SECONDS = 0.004
"""After that long the event loop has its turn."""

_GROUP = Statement(record_queries.RECORDS_GROUP, [INT8.oid] * 5)

_Key = tuple[int, bytes, int, int]
"""Network, hash of the block, first and last transaction."""


class DerivedReads(TraceReads):
    """Answers that are derived from records. Raises: as `TraceReads`."""

    def __init__(
        self,
        connections: Connections,
        directory: Directory,
        cache: BytesCache[CacheKey],
    ) -> None:
        super().__init__(connections, directory, cache)
        key = [("network_id", INT8), ("hash", BYTEA), ("first", INT8), ("last", INT8)]
        self._trace_sizes: Lookup[_Key, Row] = Lookup(
            connections, record_queries.TRACE_SIZES, key, whole_row, max_batch=16
        )
        self._records_plans: Lookup[tuple[int, bytes, int, int, int, int], Row] = (
            Lookup(
                connections,
                record_queries.RECORDS_PLAN,
                [*key, ("calls", INT8), ("prestate", INT8)],
                whole_row,
                max_batch=16,
                is_immutable=True,
            )
        )

    async def trace_sizes(
        self, network_id: int, block_hash: bytes, first: int = 0, last: int = MAX_INDEX
    ) -> TraceSizes | None:
        """Return how many transactions a block has, and how long their answers are."""
        row = await self._trace_sizes.get((network_id, block_hash, first, last))
        if row is None:
            return None
        return TraceSizes(*(read_int8(column or b"") for column in row))

    def derived_block_trace(
        self,
        network_id: int,
        block_hash: bytes,
        derivation: Derivation,
        first: int = 0,
        last: int = MAX_INDEX,
    ) -> MaybeAnswer:
        """Return a block's entries; see `nodeapi.ports.Records`."""
        cache_key = None
        if first == 0 and last == MAX_INDEX:
            cache_key = ("derived", derivation.name, network_id, block_hash)
            cached = self._cache.get(cache_key)
            if cached is not None:
                return cached
        key = (network_id, block_hash, first, min(last, MAX_INDEX))
        return self._derive_block(key, derivation, cache_key)

    def derived_transaction_trace(
        self, network_id: int, block_hash: bytes, index: int, derivation: Derivation
    ) -> MaybeAnswer:
        """Return one transaction's answer; None when the block has no such place."""
        if index > MAX_INDEX:
            return None
        cache_key = ("derived", derivation.name, network_id, block_hash, index)
        cached = self._cache.get(cache_key)
        if cached is not None:
            return cached
        key = (network_id, block_hash, index, index)
        return self._derive_transaction(key, derivation, cache_key)

    async def _derive_block(
        self, key: _Key, derivation: Derivation, cache_key: CacheKey | None
    ) -> Answer | None:
        plan = await self._records_plan(key, derivation)
        if plan is None:
            return None
        spool = Spool(SHORT_BYTES, self._spooled)
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
        self, key: _Key, derivation: Derivation, cache_key: CacheKey
    ) -> Answer | None:
        plan = await self._records_plan(key, derivation)
        if plan is None or not plan[2]:
            return None
        spool = Spool(SHORT_BYTES, self._spooled)
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
        """Return the block's id, its number, and the weights of the transactions."""
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
