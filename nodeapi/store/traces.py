"""Results of the default tracers, restored from trace records.

A short result is read by one query and cached. A long result is a stream with an exact
size, which a query computes first. It is read in groups of transactions. Records of a
single large transaction are read in parts. Each group or part is read after the client
has received the one before.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from evm.tracers.record import (
    RecordDamaged,
    RecordTooLarge,
    code_hashes,
    fill_all_calls,
    fill_codes,
    unpack,
)
from jsonrpc.later import DONE, Later
from jsonrpc.stream import Stream
from nodeapi.encoding import MAX_INDEX
from nodeapi.errors.traces import TraceTooLarge
from nodeapi.results import entries
from nodeapi.results.answers import Answer
from nodeapi.store import record_queries
from nodeapi.store.base import CacheKey, Reads, Sources, whole_row
from nodeapi.store.codes import Codes
from nodeapi.store.record_queries import RecordKind
from nodeapi.store.trace_streams import ADVICE, Span, TraceStreams, record_name
from postgres.lookup import Lookup
from postgres.statement import BYTEA, INT8, Row, read_array, read_int8

KINDS: tuple[RecordKind, ...] = ("calls", "prestate")

SHORT_BYTES = 2**20
"""Largest result that is not streamed. Each request for it takes some milliseconds, and
as much memory as the result."""

_MAX_BATCH = 4
"""Short results read by one query, which arrive together."""

_Key = tuple[int, bytes, int, int]
"""Network, block hash, and index of the first and the last transaction."""


class TraceReads(Reads):
    """Reads of callTracer's and prestateTracer's results with default options.

    All results fail with TraceTooLarge, Unavailable.
    """

    def __init__(self, sources: Sources) -> None:
        super().__init__(sources)
        self._codes = Codes(sources.connections, sources.cache)
        self._streams = TraceStreams(sources.connections, self._codes)
        key = [("network_id", INT8), ("hash", BYTEA), ("first", INT8), ("last", INT8)]
        self._short_traces: dict[RecordKind, Lookup[_Key, Row]] = {
            kind: Lookup(
                sources.connections,
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
    ) -> Later[Answer | None]:
        """Return a block's entries: `[{"txHash":"0x…","result":…},…]`.

        last may exceed the block's last index. Fails with TraceTooLarge for a transaction
        whose trace record would have exceeded the limit.
        """
        cache_key = None
        if first == 0 and last == MAX_INDEX:
            cache_key = ("trace", kind, network_id, block_hash)
            cached = self._cache.get(cache_key)
            if cached is not None:
                return Later(cached)
        key = (network_id, block_hash, first, min(last, MAX_INDEX))
        found = Later.from_future(self._short_traces[kind].get(key))
        return found.then(partial(self._block_answer, kind, first, last, cache_key))

    def transaction_trace(
        self, network_id: int, block_hash: bytes, index: int, kind: RecordKind
    ) -> Later[Answer | None]:
        """Return one transaction's result, or None if the block does not contain it."""
        if index > MAX_INDEX:
            return DONE
        cache_key = ("trace", kind, network_id, block_hash, index)
        cached = self._cache.get(cache_key)
        if cached is not None:
            return Later(cached)
        key = (network_id, block_hash, index, index)
        found = Later.from_future(self._short_traces[kind].get(key))
        return found.then(partial(self._transaction_answer, kind, index, cache_key))

    def _block_answer(
        self,
        kind: RecordKind,
        first: int,
        last: int,
        cache_key: CacheKey | None,
        row: Row | None,
    ) -> Later[Answer | None]:
        """Return the answer that a row of `record_queries.short_trace` contains."""
        if row is None:
            return DONE  # not cached: the block may be imported later
        block_id, count, size = (read_int8(column or b"") for column in row[:3])
        if size > SHORT_BYTES:
            span = Span(block_id, first, min(last, first + count - 1))
            chunks = self._streams.entries(kind, span)
            return Later(Stream(entries.array_size(count, size), chunks, ADVICE))
        texts = self._texts(kind, row, first)
        answer = entries.array(entries.of_many(row[3] or b"", texts))
        return self._completed(kind, answer, cache_key)

    def _transaction_answer(
        self, kind: RecordKind, index: int, cache_key: CacheKey, row: Row | None
    ) -> Later[Answer | None]:
        """Return the answer that a row of `record_queries.short_trace` contains."""
        if row is None:
            return DONE
        block_id, count, size = (read_int8(column or b"") for column in row[:3])
        if count == 0:
            return DONE
        if size > SHORT_BYTES:
            span = Span(block_id, index, index)
            return Later(Stream(size, self._streams.result(kind, span)))
        (answer,) = self._texts(kind, row, index)
        return self._completed(kind, answer, cache_key)

    def _completed(
        self, kind: RecordKind, answer: bytes, cache_key: CacheKey | None
    ) -> Later[bytes]:
        """Insert code into prestateTracer's results, and cache the result.

        The code is read once for all transactions, which share much of it.
        """

        def keep(answer: bytes) -> bytes:
            if cache_key is not None:
                self._cache.put(cache_key, answer)
            return answer

        if kind == "calls":
            return Later(keep(answer))
        codes = self._codes.get_all(code_hashes(answer))
        return codes.then(lambda found: keep(fill_codes(answer, found)))

    def _texts(self, kind: RecordKind, row: Row, first: int) -> list[bytes]:
        """Return the results of a row's transactions. first: index of the first one.

        Results of prestateTracer still lack the code.
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
