"""Reads of transactions by their hash: where they stand, their objects, receipts, RLP.

A transaction may stand in several blocks, of which one at most is canonical: that one
is answered. It depends on the head, and so what is kept of it names the head.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from struct import Struct

from jsonrpc.stream import Stream
from networks.directory import Directory, NetworkView
from nodeapi.evm import rlp
from nodeapi.ports import Answer, Document, MaybeAnswer, Place
from nodeapi.receipts import (
    HEAD_BYTES,
    receipt_document,
    receipt_pieces,
    receipt_size,
)
from nodeapi.store import record_queries
from nodeapi.store.base import CacheKey, Reads, settled, tagged_hash, whole_row
from nodeapi.store.spool import Spool
from nodeapi.store.trace_streams import Span, groups
from nodeapi.store.traces import SHORT_BYTES
from nodeapi.tracing.spool import SpoolCount
from postgres.cache import BytesCache
from postgres.connections import Connections
from postgres.errors import Unavailable
from postgres.lookup import Lookup
from postgres.statement import (
    BYTEA,
    INT8,
    Row,
    Statement,
    read_array,
    read_int8,
    read_int8_array,
)

SHORT_RECEIPTS_BYTES = 2**18
"""Stored receipts of a block that are read at once; they grow tenfold, or hostile ones
four hundredfold."""

LONG_BODY_BYTES = 2**18
"""Bodies beyond which a transaction is looked for in a thread."""

_Receipt = tuple[bytes, bytes]
"""As it is stored, and the head of its transaction's object."""

_PLACE = Struct("!32sqi")
_INT4 = Struct("!i")

_RECEIPTS = Statement(record_queries.receipts(HEAD_BYTES), [INT8.oid] * 3)


class TransactionReads(Reads):
    """Answers about single transactions, and receipts.

    Everything raises, now or when awaited, Unavailable.
    """

    def __init__(
        self,
        connections: Connections,
        directory: Directory,
        cache: BytesCache[CacheKey],
    ) -> None:
        super().__init__(connections, directory, cache)
        by_hash = [("network_id", INT8), ("hash", BYTEA)]

        def rows(sql: str, max_batch: int) -> Lookup[tuple[int, bytes], Row]:
            return Lookup(connections, sql, by_hash, whole_row, max_batch=max_batch)

        self._places = rows(record_queries.PLACE, 256)
        self._by_hash = rows(record_queries.TRANSACTION_BY_HASH, 64)
        self._receipts = rows(record_queries.receipt_by_hash(HEAD_BYTES), 64)
        self._block_receipts = rows(
            record_queries.short_receipts(HEAD_BYTES, SHORT_RECEIPTS_BYTES), 4
        )
        self._raw_blocks = rows(record_queries.RAW_BLOCK, 4)
        self._raw_transactions = rows(record_queries.RAW_TRANSACTION, 4)

    def canonical_hash(
        self, network_id: int, number_or_tag: int | str
    ) -> bytes | Awaitable[bytes | None] | None:
        """Return the hash of the canonical block with a number or a tag."""
        view = self._directory.current(network_id)
        if isinstance(view, NetworkView):
            return self._hash_under(view, number_or_tag)
        return self._hash_later(view, number_or_tag)

    def find_transaction(
        self, network_id: int, transaction_hash: bytes
    ) -> Place | Awaitable[Place | None]:
        """Return where a transaction stands on the canonical chain."""
        place = self._remembered_place(network_id, transaction_hash)
        return place or self._find(network_id, transaction_hash)

    def transaction_by_hash(self, network_id: int, transaction_hash: bytes) -> Document:
        """Return the transaction object of a canonical block's transaction."""
        place = self._remembered_place(network_id, transaction_hash)
        if place is not None:
            cached = self._cache.get(_document_key(network_id, place))
            if cached is not None:
                return cached
        return self._read_by_hash(
            self._by_hash, network_id, transaction_hash, _document_key, _stored_document
        )

    def receipt(self, network_id: int, transaction_hash: bytes) -> MaybeAnswer:
        """Return the receipt of a canonical block's transaction."""
        place = self._remembered_place(network_id, transaction_hash)
        if place is not None:
            cached = self._cache.get(_receipt_key(network_id, place))
            if cached is not None:
                return cached
        return self._read_receipt(network_id, transaction_hash)

    def block_receipts(self, network_id: int, block_hash: bytes) -> MaybeAnswer:
        """Return all receipts of a block, canonical or not, as an array."""
        cached = self._cache.get(("receipts", network_id, block_hash))
        if cached is not None:
            return cached
        return self._read_block_receipts(network_id, block_hash)

    async def raw_block(self, network_id: int, block_hash: bytes) -> bytes | None:
        """Return a block's RLP, canonical or not."""
        row = await self._raw_blocks.get((network_id, block_hash))
        if row is None:
            return None
        header, body = (column or b"" for column in row)
        _, start, end = rlp.span(body, 0, len(body))
        return rlp.wrap_list(header + body[start:end])

    async def raw_transaction(
        self, network_id: int, transaction_hash: bytes
    ) -> bytes | None:
        """Return a canonical block's transaction as EIP-2718 encodes it."""
        row = await self._raw_transactions.get((network_id, transaction_hash))
        if row is None:
            return None
        index, body = _INT4.unpack(row[0] or b"")[0], row[1] or b""
        if len(body) > LONG_BODY_BYTES:
            return await asyncio.to_thread(_transaction_in, body, index)
        return _transaction_in(body, index)

    # Where a transaction stands

    def _remembered_place(
        self, network_id: int, transaction_hash: bytes
    ) -> Place | None:
        """Return a transaction's place, if it is known under the current head."""
        view = self._directory.current(network_id)
        if not isinstance(view, NetworkView):
            return None
        key = ("place", network_id, view.head_hash, transaction_hash)
        packed = self._cache.get(key)
        return None if packed is None else Place(*_PLACE.unpack(packed))

    async def _find(self, network_id: int, transaction_hash: bytes) -> Place | None:
        row = await self._places.get((network_id, transaction_hash))
        if row is None:
            return None
        return self._place(network_id, transaction_hash, row)

    def _place(self, network_id: int, transaction_hash: bytes, row: Row) -> Place:
        """Return the place that a row begins with, and remember it."""
        block_hash, number, index, head_hash = row[:4]
        place = Place(
            block_hash or b"",
            read_int8(number or b""),
            _INT4.unpack(index or b"")[0],
        )
        packed = _PLACE.pack(place.block_hash, place.block_number, place.index)
        self._cache.put(("place", network_id, head_hash, transaction_hash), packed)
        return place

    async def _read_by_hash(
        self,
        lookup: Lookup[tuple[int, bytes], Row],
        network_id: int,
        transaction_hash: bytes,
        cache_key: Callable[[int, Place], CacheKey],
        answer_of: Callable[[Row], bytes],
    ) -> bytes | None:
        row = await lookup.get((network_id, transaction_hash))
        if row is None:
            return None
        place = self._place(network_id, transaction_hash, row)
        answer = answer_of(row[4:])
        self._cache.put(cache_key(network_id, place), answer)
        return answer

    # Blocks by number or tag

    def _hash_under(
        self, view: NetworkView, number_or_tag: int | str
    ) -> bytes | Awaitable[bytes | None] | None:
        if view.head_hash is None:
            return None
        if number_or_tag == "earliest":
            number_or_tag = 0
        if isinstance(number_or_tag, str):
            return tagged_hash(view, number_or_tag)
        known = self._remembered_hash(view, number_or_tag)
        return known or self._read_canonical_hash(view, number_or_tag)

    async def _hash_later(
        self, view: Awaitable[NetworkView], number_or_tag: int | str
    ) -> bytes | None:
        return await settled(self._hash_under(await view, number_or_tag))

    async def _read_canonical_hash(
        self, view: NetworkView, number: int
    ) -> bytes | None:
        above = view.head_number is None or number > view.head_number
        if above and not await self._reaches(view, number):
            return None
        row = await self._canonical_hashes.get((view.id, number))
        if row is None or row[0] is None:
            return None
        self._remember_hash(view, number, row[0], row[1])
        return row[0]

    # Receipts

    async def _read_receipt(
        self, network_id: int, transaction_hash: bytes
    ) -> Answer | None:
        row = await self._receipts.get((network_id, transaction_hash))
        if row is None:
            return None
        place = self._place(network_id, transaction_hash, row)
        receipt, head = (column or b"" for column in row[4:])
        size = receipt_size(receipt, head)
        if size > SHORT_BYTES:
            return Stream(size, _pieces(receipt, head))
        answer = receipt_document(receipt, head)
        self._cache.put(_receipt_key(network_id, place), answer)
        return answer

    async def _read_block_receipts(
        self, network_id: int, block_hash: bytes
    ) -> Answer | None:
        row = await self._block_receipts.get((network_id, block_hash))
        if row is None:
            return None
        block_id, weights = read_int8(row[0] or b""), read_int8_array(row[1] or b"")
        if sum(weights) > SHORT_RECEIPTS_BYTES:
            receipts = self._receipts_in_groups(block_id, weights)
            return await _collected(receipts, self._spooled)
        pairs = _with_heads(row[2:])
        if sum(itertools.starmap(receipt_size, pairs)) > SHORT_BYTES:
            return await _collected(_at_hand(pairs), self._spooled)
        documents = itertools.starmap(receipt_document, pairs)
        answer = b"[" + b",".join(documents) + b"]"
        self._cache.put(("receipts", network_id, block_hash), answer)
        return answer

    async def _receipts_in_groups(
        self, block_id: int, weights: list[int]
    ) -> AsyncGenerator[_Receipt, None]:
        """Read the receipts of a large block, a group at a time."""
        for first, last, _ in groups(weights, 0):
            parameters = Span(block_id, first, last).parameters()
            rows = await self._connections.fetch(_RECEIPTS, parameters)
            if not rows:
                raise Unavailable("records have gone while they were read")
            for pair in _with_heads(rows[0]):
                yield pair


def _document_key(network_id: int, place: Place) -> CacheKey:
    """Return the key under which blocks' reads keep the object as well."""
    return ("transaction", network_id, place.block_hash, place.index)


def _receipt_key(network_id: int, place: Place) -> CacheKey:
    return ("receipt", network_id, place.block_hash, place.index)


def _stored_document(row: Row) -> bytes:
    return row[0] or b""


def _with_heads(row: Row) -> list[_Receipt]:
    receipts, heads = (read_array(column or b"") for column in row)
    return list(zip(receipts, heads, strict=True))


async def _at_hand(pairs: list[_Receipt]) -> AsyncGenerator[_Receipt, None]:
    for pair in pairs:
        yield pair


async def _pieces(receipt: bytes, head: bytes) -> AsyncGenerator[bytes, None]:
    for piece in receipt_pieces(receipt, head):
        yield piece


async def _collected(
    receipts: AsyncGenerator[_Receipt, None], count: SpoolCount
) -> Answer:
    """Complete many receipts, and let others have their turn after each piece."""
    spool = Spool(SHORT_BYTES, count)
    try:
        separator = b"["
        async with aclosing(receipts):
            async for receipt, head in receipts:
                spool.write(separator)
                separator = b","
                for piece in receipt_pieces(receipt, head):
                    spool.write(piece)
                    await asyncio.sleep(0)
        spool.write(b"]")
        return spool.answer("ask for single receipts")
    except BaseException:
        spool.close()
        raise


def _transaction_in(body: bytes, index: int) -> bytes:
    """Return a transaction out of a block's body: legacy ones are lists, others strings."""
    _, position, end = rlp.span(body, 0, len(body))
    _, position, end = rlp.span(body, position, end)
    for _ in range(index):
        _, _, position = rlp.span(body, position, end)
    is_list, start, stop = rlp.span(body, position, end)
    return body[position:stop] if is_list else body[start:stop]
