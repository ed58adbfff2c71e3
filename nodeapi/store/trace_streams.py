"""Long results of the default tracers, read from the database while they are sent.

The memory of a stream does not depend on the result's length. It contains one group of
records, or one part of a record, and the code for its placeholders.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Iterator
from dataclasses import dataclass

from evm.tracers.record import (
    CodeHole,
    RecordDamaged,
    code_hashes,
    fill_calls,
    fill_codes,
    stream_calls,
    stream_prestate,
    unpack,
)
from jsonrpc.stream import CHUNK_BYTES
from nodeapi.errors.traces import TraceTooLarge
from nodeapi.results import entries
from nodeapi.store import record_queries
from nodeapi.store.codes import Codes
from nodeapi.store.record_queries import RecordKind
from postgres.connections import Connections
from postgres.errors import Unavailable
from postgres.statement import (
    INT8,
    Row,
    Statement,
    int8,
    read_array,
    read_int8,
    read_int8_array,
)

ADVICE = 'request a part of the block with the options {"fromTx": …, "toTx": …}'

GROUP_BYTES = 2**18
"""Weight of the transactions that are read together. It is large enough that the
overhead of queries is small."""
GROUP_TRANSACTIONS = 512

PART_BYTES = 2**18
"""Size of one read from a transaction that exceeds a group."""

_SPAN_TYPES = [INT8.oid] * 3
_PART_TYPES = [INT8.oid] * 4


@dataclass(frozen=True, slots=True)
class Span:
    """A range of transactions of a stored block."""

    block_id: int
    first: int
    last: int
    """Included in the span."""

    def parameters(self) -> list[bytes]:
        """Return the parameters of a query: id, first and last index, in binary form."""
        return [int8(self.block_id), int8(self.first), int8(self.last)]


def groups(weights: Iterable[int], first: int) -> Iterator[tuple[int, int, int]]:
    """Yield first and last transaction of each group, and its weight.

    A transaction that weighs more than GROUP_BYTES is a group of its own.
    """
    start, weight = first, 0
    index = first
    for index, more in enumerate(weights, first):
        is_full = weight + more > GROUP_BYTES or index - start >= GROUP_TRANSACTIONS
        if index > start and is_full:
            yield start, index - 1, weight
            start, weight = index, 0
        weight += more
    if index >= start and weight:
        yield start, index, weight


def record_name(block_id: int, index: int, column: str) -> str:
    """Return a text that identifies a damaged record in the log."""
    return f"nodeapi_transactionrecord: block_id {block_id}, index {index}, {column}"


class TraceStreams:
    """Reads long results in chunks."""

    def __init__(self, connections: Connections, codes: Codes) -> None:
        self._connections = connections
        self._codes = codes
        kinds: tuple[RecordKind, ...] = ("calls", "prestate")
        self._plans = {k: Statement(record_queries.plan(k), _SPAN_TYPES) for k in kinds}
        self._groups = {
            k: Statement(record_queries.group(k), _SPAN_TYPES) for k in kinds
        }
        self._heads = {
            k: Statement(record_queries.head(k), _SPAN_TYPES[:2]) for k in kinds
        }
        self._parts = {
            k: Statement(record_queries.record_part(k), _PART_TYPES) for k in kinds
        }

    async def entries(
        self, kind: RecordKind, span: Span
    ) -> AsyncGenerator[bytes, None]:
        """Yield the array of a span's entries. Raises: as `result`."""
        separator = b"["
        async for transaction_hash, result in self._results(kind, span):
            yield separator + entries.entry_start(transaction_hash)
            async for piece in result:
                yield piece
            yield b"}"
            separator = b","
        yield b"]"

    async def result(self, kind: RecordKind, span: Span) -> AsyncGenerator[bytes, None]:
        """Yield the result of a span with a single transaction.

        Raises: TraceTooLarge before the first chunk; Unavailable at any chunk.
        """
        async for _, result in self._results(kind, span):
            async for piece in result:
                yield piece

    async def _results(
        self, kind: RecordKind, span: Span
    ) -> AsyncGenerator[tuple[bytes, AsyncGenerator[bytes, None]], None]:
        """Yield hash and answer of each transaction."""
        sizes, weights = await self._plan(kind, span)
        for index, size in enumerate(sizes, span.first):
            if size == 0:
                raise TraceTooLarge(index)
        for first, last, weight in groups(weights, span.first):
            part = Span(span.block_id, first, last)
            if weight > GROUP_BYTES:
                transaction_hash, pieces = await self._long_record(kind, part)
                yield transaction_hash, _named(pieces, kind, span.block_id, first)
                continue
            parts = await self._group(kind, part)
            for index, (transaction_hash, record, document) in enumerate(parts, first):
                if sizes[index - span.first] > CHUNK_BYTES:
                    pieces = self._from_memory(_filled(kind, [record], document))
                else:
                    pieces = self._short_record(kind, record, document)
                yield transaction_hash, _named(pieces, kind, span.block_id, index)

    async def _short_record(
        self, kind: RecordKind, record: bytes, document: bytes
    ) -> AsyncGenerator[bytes, None]:
        if kind == "calls":
            yield fill_calls(record, document)
        else:
            text = unpack(record)
            yield fill_codes(text, await self._codes.get_all(code_hashes(text)))

    async def _with_codes(
        self, pieces: Iterable[bytes | CodeHole]
    ) -> AsyncGenerator[bytes, None]:
        """Yield the pieces, with code in place of the placeholders."""
        for piece in pieces:
            if isinstance(piece, bytes):
                yield piece
            else:
                async for digits in self._digits(piece):
                    yield digits

    async def _digits(self, hole: CodeHole) -> AsyncGenerator[bytes, None]:
        digits = (await self._codes.get(hole.code_hash)).hex().encode()
        for start in range(0, len(digits), CHUNK_BYTES):
            yield digits[start : start + CHUNK_BYTES]

    async def _long_record(
        self, kind: RecordKind, span: Span
    ) -> tuple[bytes, AsyncGenerator[bytes, None]]:
        """Return hash and answer of a transaction whose record is read in parts."""
        row = await self._row(self._heads[kind], span.parameters()[:2])
        transaction_hash, document, length = (column or b"" for column in row)
        loop = asyncio.get_running_loop()

        def parts() -> Iterator[bytes]:
            # Runs in a thread, which waits while the event loop reads the next part.
            for offset in range(1, read_int8(length) + 1, PART_BYTES):
                part = self._part(kind, span, offset)
                yield asyncio.run_coroutine_threadsafe(part, loop).result()

        pieces = _filled(kind, parts(), document)
        return transaction_hash, self._from_thread(pieces)

    async def _from_thread(
        self, pieces: Iterator[bytes | CodeHole]
    ) -> AsyncGenerator[bytes, None]:
        """Produce the pieces in a thread, and yield them in chunks."""
        loop = asyncio.get_running_loop()
        while taken := await loop.run_in_executor(None, _take, pieces):
            try:
                async for piece in self._with_codes(taken):
                    yield piece
            except Unavailable:
                await loop.run_in_executor(None, _read_to_the_end, pieces)
                raise

    async def _from_memory(
        self, pieces: Iterator[bytes | CodeHole]
    ) -> AsyncGenerator[bytes, None]:
        """Yield the pieces of a record that was read as a whole, in chunks."""
        try:
            async for piece in self._with_codes(pieces):
                yield piece
        except Unavailable:
            _read_to_the_end(pieces)
            raise

    async def _plan(self, kind: RecordKind, span: Span) -> tuple[list[int], list[int]]:
        sizes, weights = await self._row(self._plans[kind], span.parameters())
        return read_int8_array(sizes or b""), read_int8_array(weights or b"")

    async def _group(
        self, kind: RecordKind, span: Span
    ) -> Iterator[tuple[bytes, bytes, bytes]]:
        row = await self._row(self._groups[kind], span.parameters())
        hashes, records, documents = (read_array(column or b"") for column in row)
        if len(hashes) != span.last - span.first + 1:
            raise Unavailable("records have gone while they were read")
        return zip(hashes, records, documents, strict=True)

    async def _part(self, kind: RecordKind, span: Span, offset: int) -> bytes:
        parameters = [*span.parameters()[:2], int8(offset), int8(PART_BYTES)]
        (part,) = await self._row(self._parts[kind], parameters)
        return part or b""

    async def _row(self, statement: Statement, parameters: list[bytes]) -> Row:
        rows = await self._connections.fetch(statement, parameters)
        if not rows:
            raise Unavailable("records have gone while they were read")
        return rows[0]


async def _named(
    pieces: AsyncGenerator[bytes, None], kind: RecordKind, block_id: int, index: int
) -> AsyncGenerator[bytes, None]:
    """Yield the pieces. Errors of damaged records name the record."""
    try:
        async for piece in pieces:
            yield piece
    except RecordDamaged as error:
        error.add_note(record_name(block_id, index, kind))
        raise


def _filled(
    kind: RecordKind, chunks: Iterable[bytes], document: bytes
) -> Iterator[bytes | CodeHole]:
    """Yield a record's result in pieces. chunks: the record's bytes, split anywhere."""
    if kind == "calls":
        return stream_calls(chunks, document)
    return stream_prestate(chunks)


def _read_to_the_end(pieces: Iterator[bytes | CodeHole]) -> None:
    """Check whether a record with unknown code hashes is damaged.

    A changed byte may be in the code hash itself. Raises: RecordDamaged.
    """
    for _ in pieces:
        pass


def _take(pieces: Iterator[bytes | CodeHole]) -> list[bytes | CodeHole]:
    """Return the next pieces, about one chunk in total; an empty list at the end."""
    taken: list[bytes | CodeHole] = []
    size = 0
    for piece in pieces:
        taken.append(piece)
        size += len(piece) if isinstance(piece, bytes) else CHUNK_BYTES
        if size >= CHUNK_BYTES:
            break
    return taken
