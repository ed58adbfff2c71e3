"""What reads of blocks and of states have in common: heads, numbers, the cache."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TypeVar

from networks.directory import Directory, NetworkView
from nodeapi.store import queries
from nodeapi.tracing.spool import SpoolCount
from postgres.cache import BytesCache
from postgres.connections import Connections
from postgres.errors import Unavailable
from postgres.lookup import Lookup
from postgres.statement import INT8, Row

T = TypeVar("T")

CacheKey = tuple[object, ...]
"""Begins with the kind of answer, and always names a block by its hash.

What a block hash stands for never changes. Which block has a number changes with the
head, hence such an entry names the head under which it was so: under another head it
is not found.
"""


class Reads:
    """Resolves heads, tags and numbers to block hashes.

    cache: of all reads together.
    """

    _spooled: SpoolCount
    """Of what waits in files; the `Store`'s."""

    def __init__(
        self,
        connections: Connections,
        directory: Directory,
        cache: BytesCache[CacheKey],
    ) -> None:
        self._connections = connections
        self._directory = directory
        self._cache = cache
        self._canonical_hashes: Lookup[tuple[int, int], Row] = Lookup(
            connections,
            queries.CANONICAL_HASH,
            [("network_id", INT8), ("number", INT8)],
            whole_row,
        )

    def head_number(self, network_id: int) -> int | Awaitable[int]:
        """Return the number of the newest block.

        Raises, now or when awaited: Unavailable, also while there is no block.
        """
        view = self._directory.current(network_id)
        if isinstance(view, NetworkView):
            return _head_number(view)
        return self._head_number_later(view)

    async def _head_number_later(self, view: Awaitable[NetworkView]) -> int:
        return _head_number(await view)

    def _remembered_hash(self, view: NetworkView, number: int) -> bytes | None:
        """Return the hash of a canonical block, if it is known under this head."""
        if number == view.head_number:
            return view.head_hash
        return self._cache.get(("number", view.id, view.head_hash, number))

    def _remember_hash(
        self, view: NetworkView, number: int, block_hash: bytes, head_hash: bytes | None
    ) -> None:
        """Remember what was read with the head that the database had then."""
        if head_hash is not None:
            self._cache.put(("number", view.id, head_hash, number), block_hash)

    async def _reaches(self, view: NetworkView, number: int) -> bool:
        """Return whether a number that is above the known head has a block after all.

        Another process may have announced a newer head a moment before this one.
        """
        newest = await self._directory.reread(view.id)
        return newest.head_number is not None and number <= newest.head_number


def tagged_hash(view: NetworkView, tag: str) -> bytes | None:
    """Return the hash of the block with a tag other than `earliest`.

    `pending` is the newest block as long as no blocks are built here.
    """
    if tag == "safe":
        return view.safe_hash
    if tag == "finalized":
        return view.finalized_hash
    return view.head_hash


async def settled(value: T | Awaitable[T]) -> T:
    """Return a value that may have to be waited for."""
    if isinstance(value, Awaitable):
        return await value
    return value


def whole_row(row: Row) -> Row:
    """Return a row as it is."""
    return row


def _head_number(view: NetworkView) -> int:
    if view.head_number is None:
        raise Unavailable("the network has no blocks yet")
    return view.head_number
