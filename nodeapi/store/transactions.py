"""Reads of transactions by hash: their positions, objects, receipts and RLP.

A transaction may be in several blocks, at most one of which is canonical. The results
are those of that block. They depend on the chain's head, which therefore is a part of
the cache keys.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncGenerator, Callable, Hashable
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from struct import Struct

from evm import rlp
from jsonrpc.later import DONE, Later, if_found
from jsonrpc.stream import Stream
from nodeapi.documents.receipts import (
    HEAD_BYTES,
    raw_receipt,
    receipt_document,
    receipt_pieces,
    receipt_size,
)
from nodeapi.encoding import MAX_INDEX, data
from nodeapi.results.answers import Answer
from nodeapi.results.spool import Spool, SpoolCount
from nodeapi.store import record_queries
from nodeapi.store.base import CacheKey, Reads, Sources, whole_row
from nodeapi.store.trace_streams import Span, groups
from nodeapi.store.traces import SHORT_BYTES
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
"""Total size of packed receipts that are read at once. As JSON they are ten times as
large, and four hundred times in hostile blocks."""

LONG_BODY_BYTES = 2**18
"""Bodies beyond which a transaction is looked for in a thread."""

LONG_RECEIPT_BYTES = 2**14
"""Packed receipts beyond which a receipt is encoded as RLP in a thread."""

StoredReceipt = tuple[bytes, bytes]
"""A stored receipt, and the first HEAD_BYTES of its transaction's object."""

_PLACE = Struct("!32sqi")
_INT4 = Struct("!i")

_RECEIPTS = Statement(record_queries.receipts(HEAD_BYTES), [INT8.oid] * 3)


@dataclass(frozen=True, slots=True)
class Place:
    """The position of a transaction in the canonical chain."""

    block_hash: bytes
    block_number: int
    index: int


class TransactionReads(Reads):
    """Reads of single transactions, and of receipts.

    All results fail with Unavailable while the database is unavailable.
    """

    def __init__(self, sources: Sources) -> None:
        super().__init__(sources)
        by_hash = [("network_id", INT8), ("hash", BYTEA)]

        def rows(sql: str, max_batch: int) -> Lookup[tuple[int, bytes], Row]:
            return Lookup(
                sources.connections, sql, by_hash, whole_row, max_batch=max_batch
            )

        self._places = rows(record_queries.PLACE, 256)
        self._by_hash = rows(record_queries.TRANSACTION_BY_HASH, 64)
        self._receipts = rows(record_queries.receipt_by_hash(HEAD_BYTES), 64)
        self._block_receipts = rows(
            record_queries.short_receipts(HEAD_BYTES, SHORT_RECEIPTS_BYTES), 4
        )
        self._raw_blocks = rows(record_queries.RAW_BLOCK, 4)
        self._raw_transactions = rows(record_queries.RAW_TRANSACTION, 4)
        self._raw_transactions_at: Lookup[tuple[int, bytes, int], Row] = Lookup(
            sources.connections,
            record_queries.RAW_TRANSACTION_AT,
            [*by_hash, ("index", INT8)],
            whole_row,
            max_batch=4,
        )

    def find_transaction(
        self, network_id: int, transaction_hash: bytes
    ) -> Later[Place | None]:
        """Return the place of a transaction on the canonical chain."""
        place = self._cached_place(network_id, transaction_hash)
        if place is not None:
            return Later(place)
        found = Later.from_future(self._places.get((network_id, transaction_hash)))
        return found.then(partial(self._found_place, network_id, transaction_hash))

    def transaction_by_hash(
        self, network_id: int, transaction_hash: bytes
    ) -> Later[bytes | None]:
        """Return the transaction object of a canonical block's transaction."""
        place = self._cached_place(network_id, transaction_hash)
        if place is not None:
            cached = self._cache.get(_document_key(network_id, place))
            if cached is not None:
                return Later(cached)
        found = Later.from_future(self._by_hash.get((network_id, transaction_hash)))
        return found.then(partial(self._document, network_id, transaction_hash))

    def receipt(self, network_id: int, transaction_hash: bytes) -> Later[Answer | None]:
        """Return the receipt of a canonical block's transaction."""
        place = self._cached_place(network_id, transaction_hash)
        if place is not None:
            cached = self._cache.get(_receipt_key(network_id, place))
            if cached is not None:
                return Later(cached)
        found = Later.from_future(self._receipts.get((network_id, transaction_hash)))
        return found.then(partial(self._receipt, network_id, transaction_hash))

    def block_receipts(
        self, network_id: int, block_hash: bytes, *, owner: Hashable = None
    ) -> Later[Answer | None]:
        """Return all receipts of a block, canonical or not, as an array."""
        cache_key = ("receipts", network_id, block_hash)
        cached = self._cache.get(cache_key)
        if cached is not None:
            return Later(cached)
        found = Later.from_future(self._block_receipts.get((network_id, block_hash)))
        return found.then(partial(self._receipts_of_block, cache_key, owner))

    async def stored_receipts(
        self, network_id: int, block_hash: bytes
    ) -> list[tuple[bytes, bytes]]:
        """Return the packed receipts of a block's transactions, in order.

        Each comes with the first HEAD_BYTES of its transaction's object. Raises:
        Unavailable, also for an unknown block.
        """
        row = await self._block_receipts.get((network_id, block_hash))
        if row is None:
            raise Unavailable("the block was removed")
        return [pair async for pair in self._receipts_in(row)]

    def raw_receipts(
        self, network_id: int, block_hash: bytes, *, owner: Hashable = None
    ) -> Later[Answer | None]:
        """Return all receipts of a block as EIP-2718 encodes them, as an array."""
        found = Later.from_future(self._block_receipts.get((network_id, block_hash)))
        return if_found(
            found,
            lambda row: Later.from_coroutine(
                _collected(
                    self._receipts_in(row), self.spooled, owner, _raw_receipt_pieces
                )
            ),
        )

    def raw_block(self, network_id: int, block_hash: bytes) -> Later[bytes | None]:
        """Return a block's RLP, canonical or not."""
        found = Later.from_future(self._raw_blocks.get((network_id, block_hash)))
        return found.then(_raw_block)

    def raw_transaction(
        self, network_id: int, transaction_hash: bytes
    ) -> Later[bytes | None]:
        """Return a canonical block's transaction as EIP-2718 encodes it."""
        key = (network_id, transaction_hash)
        return Later.from_future(self._raw_transactions.get(key)).then(_raw_transaction)

    def raw_transaction_at(
        self, network_id: int, block_hash: bytes, index: int
    ) -> Later[bytes | None]:
        """Return the transaction at an index of a block as EIP-2718 encodes it."""
        if index > MAX_INDEX:
            return DONE
        found = self._raw_transactions_at.get((network_id, block_hash, index))
        return Later.from_future(found).then(_raw_transaction)

    def _cached_place(self, network_id: int, transaction_hash: bytes) -> Place | None:
        """Return a transaction's place, if it is cached for the current head."""
        if not self._directory.is_fresh:
            return None
        view = self._directory.get(network_id)
        if view is None:
            return None
        key = ("place", network_id, view.head_hash, transaction_hash)
        packed = self._cache.get(key)
        return None if packed is None else Place(*_PLACE.unpack(packed))

    def _found_place(
        self, network_id: int, transaction_hash: bytes, row: Row | None
    ) -> Place | None:
        return None if row is None else self._place(network_id, transaction_hash, row)

    def _place(self, network_id: int, transaction_hash: bytes, row: Row) -> Place:
        """Return the place in the first columns of a row, and cache it."""
        block_hash, number, index, head_hash = row[:4]
        place = Place(
            block_hash or b"",
            read_int8(number or b""),
            _INT4.unpack(index or b"")[0],
        )
        packed = _PLACE.pack(place.block_hash, place.block_number, place.index)
        self._cache.put(("place", network_id, head_hash, transaction_hash), packed)
        return place

    def _document(
        self, network_id: int, transaction_hash: bytes, row: Row | None
    ) -> bytes | None:
        """Return a transaction object, and cache it."""
        if row is None:
            return None
        place = self._place(network_id, transaction_hash, row)
        document = row[4] or b""
        self._cache.put(_document_key(network_id, place), document)
        return document

    def _receipt(
        self, network_id: int, transaction_hash: bytes, row: Row | None
    ) -> Answer | None:
        """Return a receipt, and cache it if it is short."""
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

    def _receipts_of_block(
        self, cache_key: CacheKey, owner: Hashable, row: Row | None
    ) -> Later[Answer | None]:
        """Return the receipts of a block, and cache them if they are short."""
        if row is None:
            return DONE
        block_id, weights = read_int8(row[0] or b""), read_int8_array(row[1] or b"")
        if sum(weights) > SHORT_RECEIPTS_BYTES:
            receipts = self._receipts_in_groups(block_id, weights)
            return Later.from_coroutine(_collected(receipts, self.spooled, owner))
        pairs = receipts_with_heads(row[2:])
        if sum(itertools.starmap(receipt_size, pairs)) > SHORT_BYTES:
            receipts = at_hand(pairs)
            return Later.from_coroutine(_collected(receipts, self.spooled, owner))
        documents = itertools.starmap(receipt_document, pairs)
        answer = b"[" + b",".join(documents) + b"]"
        self._cache.put(cache_key, answer)
        return Later(answer)

    def _receipts_in(self, row: Row) -> AsyncGenerator[StoredReceipt, None]:
        """Return the receipts of a block. row: of `record_queries.short_receipts`."""
        block_id, weights = read_int8(row[0] or b""), read_int8_array(row[1] or b"")
        if sum(weights) > SHORT_RECEIPTS_BYTES:
            return self._receipts_in_groups(block_id, weights)
        return at_hand(receipts_with_heads(row[2:]))

    async def _receipts_in_groups(
        self, block_id: int, weights: list[int]
    ) -> AsyncGenerator[StoredReceipt, None]:
        """Read the receipts of a large block, a group at a time."""
        for first, last, _ in groups(weights, 0):
            parameters = Span(block_id, first, last).parameters()
            rows = await self._connections.fetch(_RECEIPTS, parameters)
            if not rows:
                raise Unavailable("records have gone while they were read")
            for pair in receipts_with_heads(rows[0]):
                yield pair


def _document_key(network_id: int, place: Place) -> CacheKey:
    """Return the cache key of a transaction object, shared with reads by block."""
    return ("transaction", network_id, place.block_hash, place.index)


def _receipt_key(network_id: int, place: Place) -> CacheKey:
    return ("receipt", network_id, place.block_hash, place.index)


def _raw_block(row: Row | None) -> bytes | None:
    if row is None:
        return None
    header, body = (column or b"" for column in row)
    _, start, end = rlp.span(body, 0, len(body))
    return rlp.wrap_list(header + body[start:end])


def _raw_transaction(row: Row | None) -> Later[bytes | None]:
    if row is None:
        return DONE
    index, body = _INT4.unpack(row[0] or b"")[0], row[1] or b""
    if len(body) > LONG_BODY_BYTES:
        return Later.from_coroutine(asyncio.to_thread(_transaction_in, body, index))
    return Later(_transaction_in(body, index))


def receipts_with_heads(row: Row) -> list[StoredReceipt]:
    """Return pairs of a packed receipt and the beginning of the transaction object."""
    receipts, heads = (read_array(column or b"") for column in row)
    return list(zip(receipts, heads, strict=True))


async def at_hand(pairs: list[StoredReceipt]) -> AsyncGenerator[StoredReceipt, None]:
    """Yield receipts that were read already."""
    for pair in pairs:
        yield pair


async def _pieces(receipt: bytes, head: bytes) -> AsyncGenerator[bytes, None]:
    for piece in receipt_pieces(receipt, head):
        yield piece


async def _raw_receipt_pieces(
    receipt: bytes, head: bytes
) -> AsyncGenerator[bytes, None]:
    """Yield a receipt's encoding as a JSON string."""
    if len(receipt) > LONG_RECEIPT_BYTES:
        yield await asyncio.to_thread(_raw_receipt, receipt, head)
    else:
        yield _raw_receipt(receipt, head)


def _raw_receipt(receipt: bytes, head: bytes) -> bytes:
    return data(raw_receipt(receipt_document(receipt, head)))


async def _collected(
    receipts: AsyncGenerator[StoredReceipt, None],
    count: SpoolCount,
    owner: Hashable,
    pieces: Callable[[bytes, bytes], AsyncGenerator[bytes, None]] = _pieces,
) -> Answer:
    """Return many receipts as one result. Other tasks may run after each piece.

    pieces: yields the JSON of one receipt.
    """
    spool = Spool(SHORT_BYTES, count, owner)
    try:
        spool.write(b"[")
        separator = b""
        async with aclosing(receipts):
            async for receipt, head in receipts:
                spool.write(separator)
                separator = b","
                async for piece in pieces(receipt, head):
                    spool.write(piece)
                    await asyncio.sleep(0)
        spool.write(b"]")
        return spool.answer("request the receipts one by one")
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
