"""Reads of blocks and transactions, as the bytes that are answered."""

from __future__ import annotations

from collections.abc import Awaitable
from functools import partial

from jsonrpc.later import Later
from networks.directory import Directory, NetworkView
from nodeapi.documents import unpack_full_block
from nodeapi.encoding import MAX_INDEX
from nodeapi.ports import Document
from nodeapi.store import queries
from nodeapi.store.base import CacheKey, Reads, settled, tagged_hash
from postgres.cache import BytesCache
from postgres.connections import Connections
from postgres.lookup import Lookup
from postgres.statement import BYTEA, INT8, Row

_Numbered = tuple[bytes, bytes, bytes | None]
"""Document, hash, and the head under which the block has its number."""

_MAX_BATCH = {False: 64, True: 8}
"""Blocks of one query, without and with transaction objects. The latter are a hundred
times as large, and the first of a batch waits for the last."""

_MAX_QUERIES = 1
"""Of each kind at a time, for blocks as for transactions: what comes meanwhile joins the
next one, and a query for eight takes a quarter of the processor time per key that one
for one takes, here and in PostgreSQL."""


class BlockReads(Reads):
    """Answers with block and transaction objects.

    full: with transaction objects, else with their hashes.
    with_total_difficulty: whether the object begins with totalDifficulty.
    Everything raises, now or when awaited, Unavailable.
    """

    _unpacked: tuple[bytes | None, bytes] = None, b""
    """The latest block with its transactions, as it was read and as it is sent."""

    def __init__(
        self,
        connections: Connections,
        directory: Directory,
        cache: BytesCache[CacheKey],
    ) -> None:
        super().__init__(connections, directory, cache)
        by_hash = [("network_id", INT8), ("hash", BYTEA)]
        by_number = [("network_id", INT8), ("number", INT8)]
        self._blocks_by_hash: dict[bool, Lookup[tuple[int, bytes], bytes]] = {
            full: Lookup(
                connections,
                queries.block_by_hash(full),
                by_hash,
                _document,
                max_batch=batch,
                max_queries=_MAX_QUERIES,
                is_immutable=True,
            )
            for full, batch in _MAX_BATCH.items()
        }
        self._blocks_by_number: dict[bool, Lookup[tuple[int, int], _Numbered]] = {
            full: Lookup(
                connections,
                queries.block_by_number(full),
                by_number,
                _numbered,
                max_batch=batch,
                max_queries=_MAX_QUERIES,
            )
            for full, batch in _MAX_BATCH.items()
        }
        self._transactions: Lookup[tuple[int, bytes, int], bytes] = Lookup(
            connections,
            queries.TRANSACTION,
            [*by_hash, ("index", INT8)],
            _document,
            max_queries=_MAX_QUERIES,
            is_immutable=True,
        )

    def block_by_hash(
        self,
        network_id: int,
        block_hash: bytes,
        full: bool,
        with_total_difficulty: bool,
    ) -> Document:
        """Return a block, canonical or not."""
        cache_key = ("block", network_id, block_hash, full, with_total_difficulty)
        cached = self._cache.get(cache_key)
        if cached is not None:
            return cached
        found = self._blocks_by_hash[full].get((network_id, block_hash))
        return Later(found, partial(self._keep_block, cache_key))

    def block_by_number(
        self,
        network_id: int,
        number_or_tag: int | str,
        full: bool,
        with_total_difficulty: bool,
    ) -> Document:
        """Return the canonical block with a number or a tag."""
        view = self._directory.current(network_id)
        if isinstance(view, NetworkView):
            return self._block_in(view, number_or_tag, full, with_total_difficulty)
        return self._block_later(view, number_or_tag, full, with_total_difficulty)

    def transaction_by_block_hash_and_index(
        self, network_id: int, block_hash: bytes, index: int
    ) -> Document:
        """Return the transaction at a place in a block, canonical or not."""
        cache_key = ("transaction", network_id, block_hash, index)
        cached = self._cache.get(cache_key)
        if cached is not None or index > MAX_INDEX:
            return cached
        found = self._transactions.get((network_id, block_hash, index))
        return Later(found, partial(self._keep_transaction, cache_key))

    def _keep_block(
        self,
        cache_key: tuple[str, int, bytes, bool, bool],
        document: bytes | None,
    ) -> bytes | None:
        """Make the answer of what was found, and keep it."""
        if document is None:
            return None  # not for ever: the block may come
        _, _, _, full, with_total_difficulty = cache_key
        if full:
            document = self._unpack(document)
        if not with_total_difficulty:
            document = _without_total_difficulty(document)
        self._cache.put(cache_key, document)
        return document

    def _keep_transaction(
        self, cache_key: CacheKey, document: bytes | None
    ) -> bytes | None:
        if document is not None:
            self._cache.put(cache_key, document)
        return document

    def _unpack(self, packed: bytes) -> bytes:
        """Return a block with its transactions; once for all who asked for it together.

        Only here, not for a whole batch: it is sent from the processor's cache.
        """
        known, document = self._unpacked
        if packed is not known:
            document = unpack_full_block(packed)
            self._unpacked = packed, document
        return document

    def _block_in(
        self,
        view: NetworkView,
        number_or_tag: int | str,
        full: bool,
        with_total_difficulty: bool,
    ) -> Document:
        """Return a block of the chain whose head a view names."""
        block_hash: bytes | None
        if view.head_hash is None:
            return None
        if number_or_tag == "earliest":
            number_or_tag = 0
        if isinstance(number_or_tag, int):
            number = number_or_tag
            block_hash = self._remembered_hash(view, number)
            if block_hash is None:
                is_new = view.head_number is None or number > view.head_number
                read = self._read_new_number if is_new else self._read_number
                return read(view, number, full, with_total_difficulty)
        else:
            block_hash = tagged_hash(view, number_or_tag)
            if block_hash is None:
                return None
        return self.block_by_hash(view.id, block_hash, full, with_total_difficulty)

    async def _block_later(
        self,
        view: Awaitable[NetworkView],
        number_or_tag: int | str,
        full: bool,
        with_total_difficulty: bool,
    ) -> bytes | None:
        return await settled(
            self._block_in(await view, number_or_tag, full, with_total_difficulty)
        )

    async def _read_new_number(
        self, view: NetworkView, number: int, full: bool, with_total_difficulty: bool
    ) -> bytes | None:
        if not await self._reaches(view, number):
            return None
        return await self._read_number(view, number, full, with_total_difficulty)

    def _read_number(
        self, view: NetworkView, number: int, full: bool, with_total_difficulty: bool
    ) -> Later[bytes | None]:
        found = self._blocks_by_number[full].get((view.id, number))
        keep = partial(self._keep_numbered, view, number, full, with_total_difficulty)
        return Later(found, keep)

    def _keep_numbered(
        self,
        view: NetworkView,
        number: int,
        full: bool,
        with_total_difficulty: bool,
        row: _Numbered | None,
    ) -> bytes | None:
        """Make the answer of what was found, and keep it and its hash."""
        if row is None:
            return None
        document, block_hash, head_hash = row
        self._remember_hash(view, number, block_hash, head_hash)
        cache_key = ("block", view.id, block_hash, full, with_total_difficulty)
        return self._keep_block(cache_key, document)


def _document(row: Row) -> bytes:
    document = row[0]
    assert document is not None
    return document


def _numbered(row: Row) -> _Numbered:
    document, block_hash, head_hash = row
    assert document is not None and block_hash is not None
    return document, block_hash, head_hash


def _without_total_difficulty(document: bytes) -> bytes:
    """Cut the first member off, which is totalDifficulty."""
    return b"{" + document[document.index(b",") + 1 :]
