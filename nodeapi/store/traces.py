"""Answers of the default tracers, out of the bytes that are stored for them.

A short answer is one query, put together in one go and kept. A long one is a plan,
which tells its exact size, and a stream: it is read in groups of transactions, and what
a single transaction has too much of in parts, each when the reader has taken the last.
"""

from __future__ import annotations

from collections.abc import Iterable

from jsonrpc.stream import Stream
from networks.directory import Directory
from nodeapi.encoding import MAX_INDEX
from nodeapi.errors import TraceTooLarge
from nodeapi.ports import MaybeAnswer, RecordKind
from nodeapi.store import entries, record_queries
from nodeapi.store.base import CacheKey, Reads, whole_row
from nodeapi.store.codes import Codes
from nodeapi.store.trace_streams import ADVICE, Span, TraceStreams, record_name
from nodeapi.tracers.record import (
    RecordDamaged,
    RecordTooLarge,
    code_hashes,
    fill_all_calls,
    fill_codes,
    unpack,
)
from postgres.cache import BytesCache
from postgres.connections import Connections
from postgres.lookup import Lookup
from postgres.statement import BYTEA, INT8, Row, read_array, read_int8

KINDS: tuple[RecordKind, ...] = ("calls", "prestate")

SHORT_BYTES = 2**20
"""Longest answers that are put together in one go: that takes some milliseconds, and
as much memory as the answer for each request."""

_MAX_BATCH = 4
"""Short answers of one query; the first waits for the last."""

_Key = tuple[int, bytes, int, int]
"""Network, hash of the block, first and last transaction."""


class TraceReads(Reads):
    """Answers of callTracer and prestateTracer in their default configuration.

    Everything raises, now or when awaited: TraceTooLarge, Unavailable.
    """

    def __init__(
        self,
        connections: Connections,
        directory: Directory,
        cache: BytesCache[CacheKey],
    ) -> None:
        super().__init__(connections, directory, cache)
        self._codes = Codes(connections, cache)
        self._streams = TraceStreams(connections, self._codes)
        key = [("network_id", INT8), ("hash", BYTEA), ("first", INT8), ("last", INT8)]
        self._short_traces: dict[RecordKind, Lookup[_Key, Row]] = {
            kind: Lookup(
                connections,
                record_queries.short_trace(kind, SHORT_BYTES),
                key,
                whole_row,
                max_batch=_MAX_BATCH,
                is_immutable=True,
            )
            for kind in KINDS
        }

    def block_trace(
        self,
        network_id: int,
        block_hash: bytes,
        kind: RecordKind,
        first: int = 0,
        last: int = MAX_INDEX,
    ) -> MaybeAnswer:
        """Return a block's entries; see `nodeapi.ports.Records`."""
        cache_key = None
        if first == 0 and last == MAX_INDEX:
            cache_key = ("trace", kind, network_id, block_hash)
            cached = self._cache.get(cache_key)
            if cached is not None:
                return cached
        key = (network_id, block_hash, first, min(last, MAX_INDEX))
        return self._read_block_trace(kind, key, cache_key)

    def transaction_trace(
        self, network_id: int, block_hash: bytes, index: int, kind: RecordKind
    ) -> MaybeAnswer:
        """Return one transaction's answer; None when the block has no such place."""
        if index > MAX_INDEX:
            return None
        cache_key = ("trace", kind, network_id, block_hash, index)
        cached = self._cache.get(cache_key)
        if cached is not None:
            return cached
        key = (network_id, block_hash, index, index)
        return self._read_transaction_trace(kind, key, cache_key)

    async def _read_block_trace(
        self, kind: RecordKind, key: _Key, cache_key: CacheKey | None
    ) -> bytes | Stream | None:
        row = await self._short_traces[kind].get(key)
        if row is None:
            return None  # not for ever: the block may come
        block_id, count, size = (read_int8(column or b"") for column in row[:3])
        first, last = key[2:]
        if size > SHORT_BYTES:
            span = Span(block_id, first, min(last, first + count - 1))
            return Stream(
                entries.array_size(count, size),
                self._streams.entries(kind, span),
                ADVICE,
            )
        texts = self._texts(kind, row, first)
        answer = entries.array(entries.of_many(row[3] or b"", texts))
        if kind == "prestate":
            answer = await self._with_code(answer)
        if cache_key is not None:
            self._cache.put(cache_key, answer)
        return answer

    async def _read_transaction_trace(
        self, kind: RecordKind, key: _Key, cache_key: CacheKey
    ) -> bytes | Stream | None:
        row = await self._short_traces[kind].get(key)
        if row is None:
            return None
        block_id, count, size = (read_int8(column or b"") for column in row[:3])
        if count == 0:
            return None
        index = key[2]
        if size > SHORT_BYTES:
            span = Span(block_id, index, index)
            return Stream(size, self._streams.result(kind, span))
        (answer,) = self._texts(kind, row, index)
        if kind == "prestate":
            answer = await self._with_code(answer)
        self._cache.put(cache_key, answer)
        return answer

    def _texts(self, kind: RecordKind, row: Row, first: int) -> list[bytes]:
        """Return the answers of a row whose first transaction has a number.

        In those of prestateTracer the code is still missing.
        """
        records = read_array(row[5] or b"")
        filled: Iterable[bytes]
        if kind == "prestate":
            filled = map(unpack, records)
        else:
            filled = fill_all_calls(records, read_array(row[4] or b""))
        texts: list[bytes] = []
        try:
            texts.extend(filled)
        except RecordTooLarge as error:
            raise TraceTooLarge(first + len(texts)) from error
        except RecordDamaged as error:
            block_id = read_int8(row[0] or b"")
            error.add_note(record_name(block_id, first + len(texts), kind))
            raise
        return texts

    async def _with_code(self, text: bytes) -> bytes:
        """Put code where it is missing: once for all answers, which share much of it."""
        return fill_codes(text, await self._codes.get_all(code_hashes(text)))
