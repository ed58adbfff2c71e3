"""Reads of block and transaction objects, as the JSON of the response."""

from __future__ import annotations

from functools import partial

from jsonrpc.later import DONE, Later
from networks.directory import NetworkView
from nodeapi.documents.blocks import unpack_full_block, without_total_difficulty
from nodeapi.encoding import MAX_INDEX
from nodeapi.store import queries
from nodeapi.store.base import CacheKey, Reads, Sources, tagged_hash
from postgres.lookup import Lookup
from postgres.statement import BYTEA, INT8, Row

_Numbered = tuple[bytes, bytes, bytes | None]
"""Document, hash, and the head under which the block has its number."""

_MAX_BATCH = {False: 64, True: 8}
"""Blocks read by one query, without and with transaction objects. The latter are a
hundred times as large, and all results of a query arrive together."""

_MAX_QUERIES = 1
"""Concurrent queries of each kind. Keys requested during a query are read by the
next query. A query for eight keys takes a quarter of the processor time per key that a
query for one key takes, here and in PostgreSQL."""


class BlockReads(Reads):
    """Reads of block and transaction objects.

    full: whether to return transaction objects instead of their hashes.
    with_total_difficulty: whether the object begins with totalDifficulty.

    All results fail with Unavailable while the database is unavailable.
    """

    _unpacked: tuple[bytes | None, bytes] = None, b""
    """The latest full block: packed and unpacked."""

    def __init__(self, sources: Sources) -> None:
        super().__init__(sources)
        by_hash = [("network_id", INT8), ("hash", BYTEA)]
        by_number = [("network_id", INT8), ("number", INT8)]
        self._blocks_by_hash: dict[bool, Lookup[tuple[int, bytes], bytes]] = {
            full: Lookup(
                sources.connections,
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
                sources.connections,
                queries.block_by_number(full),
                by_number,
                _numbered,
                max_batch=batch,
                max_queries=_MAX_QUERIES,
            )
            for full, batch in _MAX_BATCH.items()
        }
        self._transactions: Lookup[tuple[int, bytes, int], bytes] = Lookup(
            sources.connections,
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
    ) -> Later[bytes | None]:
        """Return a block, canonical or not."""
        cache_key = ("block", network_id, block_hash, full, with_total_difficulty)
        cached = self._cache.get(cache_key)
        if cached is not None:
            return Later(cached)
        found = self._blocks_by_hash[full].get((network_id, block_hash))
        return Later.from_future(found).then(partial(self._keep_block, cache_key))

    def block_by_number(
        self,
        network_id: int,
        number_or_tag: int | str,
        full: bool,
        with_total_difficulty: bool,
    ) -> Later[bytes | None]:
        """Return the canonical block with a number or a tag."""
        return self._directory.current(network_id).then(
            lambda view: self._block_in(
                view, number_or_tag, full, with_total_difficulty
            )
        )

    def transaction_by_block_hash_and_index(
        self, network_id: int, block_hash: bytes, index: int
    ) -> Later[bytes | None]:
        """Return the transaction at an index of a block, canonical or not."""
        cache_key = ("transaction", network_id, block_hash, index)
        cached = self._cache.get(cache_key)
        if cached is not None or index > MAX_INDEX:
            return Later(cached)
        found = self._transactions.get((network_id, block_hash, index))
        return Later.from_future(found).then(partial(self._keep_transaction, cache_key))

    def _keep_block(
        self,
        cache_key: tuple[str, int, bytes, bool, bool],
        document: bytes | None,
    ) -> bytes | None:
        """Build the answer from a stored document, and cache it."""
        if document is None:
            return None  # not cached: the block may be imported later
        _, _, _, full, with_total_difficulty = cache_key
        if full:
            document = self._unpack(document)
        if not with_total_difficulty:
            document = without_total_difficulty(document)
        self._cache.put(cache_key, document)
        return document

    def _keep_transaction(
        self, cache_key: CacheKey, document: bytes | None
    ) -> bytes | None:
        if document is not None:
            self._cache.put(cache_key, document)
        return document

    def _unpack(self, packed: bytes) -> bytes:
        """Return the JSON of a packed full block, cached for concurrent requests.

        Blocks of a batch are unpacked one at a time, directly before they are sent,
        because the text is then still in the processor's cache.
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
    ) -> Later[bytes | None]:
        """Return the canonical block with a number or tag, as of the view's head."""
        if view.head_hash is None:
            return DONE
        if number_or_tag == "earliest":
            number_or_tag = 0
        if isinstance(number_or_tag, str):
            block_hash = tagged_hash(view, number_or_tag)
            if block_hash is None:
                return DONE
        else:
            block_hash = self._cached_hash(view, number_or_tag)
            if block_hash is None:
                number = number_or_tag
                return self._if_reached(
                    view,
                    number,
                    lambda: self._read_number(
                        view, number, full, with_total_difficulty
                    ),
                )
        return self.block_by_hash(view.id, block_hash, full, with_total_difficulty)

    def _read_number(
        self, view: NetworkView, number: int, full: bool, with_total_difficulty: bool
    ) -> Later[bytes | None]:
        found = Later.from_future(self._blocks_by_number[full].get((view.id, number)))
        return found.then(
            partial(self._keep_numbered, view, number, full, with_total_difficulty)
        )

    def _keep_numbered(
        self,
        view: NetworkView,
        number: int,
        full: bool,
        with_total_difficulty: bool,
        row: _Numbered | None,
    ) -> bytes | None:
        """Build the answer from a row. Cache the answer and the block's hash."""
        if row is None:
            return None
        document, block_hash, head_hash = row
        self._cache_hash(view, number, block_hash, head_hash)
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
