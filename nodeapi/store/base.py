"""Functions shared by reads of blocks and states: heads, numbers, the cache."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from evm.changes import Changes, decode_changes
from jsonrpc.later import DONE, Later
from networks.directory import Directory, NetworkView
from nodeapi.encoding import BlockReference
from nodeapi.errors.blocks import (
    HeaderForHashNotFound,
    HeaderNotFound,
    HistoryPruned,
    NotCanonical,
    TaggedBlockNotFound,
)
from nodeapi.results.spool import SpoolCount
from nodeapi.store import queries
from postgres.cache import BytesCache
from postgres.connections import Connections
from postgres.errors import Unavailable
from postgres.lookup import Lookup
from postgres.statement import INT8, Row, Statement, read_bool

T = TypeVar("T")

CacheKey = tuple[object, ...]
"""Begins with the kind of answer, and always names a block by its hash.

The data of a block hash never changes. The block with a number depends on the head. An
entry by number therefore contains the head's hash, and is not found under another head.
"""


@dataclass(frozen=True, slots=True)
class Sources:
    """Where values are read from. cache: shared by all reads."""

    connections: Connections
    directory: Directory
    cache: BytesCache[CacheKey]


class Reads:
    """Resolves tags and numbers to block hashes, and reads values after blocks."""

    spooled: SpoolCount
    """Counts the bytes of spooled files. Shared by the whole `Store`."""

    def __init__(self, sources: Sources) -> None:
        self._connections = sources.connections
        self._directory = sources.directory
        self._cache = sources.cache
        self._canonical_hashes: Lookup[tuple[int, int], Row] = Lookup(
            sources.connections,
            queries.CANONICAL_HASH,
            [("network_id", INT8), ("number", INT8)],
            whole_row,
        )

    def head(self, network_id: int) -> Later[NetworkView]:
        """Return a network with its current head. Fails with Unavailable."""
        return self._directory.current(network_id)

    def head_number(self, network_id: int) -> Later[int]:
        """Return the number of the newest block.

        Fails with Unavailable, also if the network has no blocks.
        """
        return self._directory.current(network_id).then(_head_number)

    def canonical_hash(
        self, network_id: int, number_or_tag: int | str
    ) -> Later[bytes | None]:
        """Return the hash of the canonical block with a number or a tag."""
        return self._directory.current(network_id).then(
            lambda view: self._hash_in(view, number_or_tag)
        )

    def _hash_in(
        self, view: NetworkView, number_or_tag: int | str
    ) -> Later[bytes | None]:
        """Return the hash of a block of the chain with a view's head."""
        if view.head_hash is None:
            return DONE
        if number_or_tag == "earliest":
            number_or_tag = 0
        if isinstance(number_or_tag, str):
            return Later(tagged_hash(view, number_or_tag))
        cached = self._cached_hash(view, number_or_tag)
        if cached is not None:
            return Later(cached)
        return self._if_reached(
            view, number_or_tag, partial(self._read_hash, view, number_or_tag)
        )

    def _read_hash(self, view: NetworkView, number: int) -> Later[bytes | None]:
        found = Later.from_future(self._canonical_hashes.get((view.id, number)))
        return found.then(partial(self._found_hash, view, number))

    def _found_hash(
        self, view: NetworkView, number: int, row: Row | None
    ) -> bytes | None:
        if row is None or row[0] is None:
            return None
        self._cache_hash(view, number, row[0], row[1])
        return row[0]

    def _known_hash(self, view: NetworkView, block: BlockReference) -> bytes | None:
        """Return the hash of the block with a number or a tag, if no read is needed.

        None if the block is named by a number whose hash is not cached for this head.
        Raises: HeaderNotFound if the network has no blocks; TaggedBlockNotFound.
        """
        if view.head_hash is None:
            raise HeaderNotFound
        if block.tag is not None and block.tag != "earliest":
            return tagged_hash(view, block.tag)
        return self._cached_hash(view, number_of(block))

    def _cached_hash(self, view: NetworkView, number: int) -> bytes | None:
        """Return the hash of a canonical block, if it is cached for this head."""
        if number == view.head_number:
            return view.head_hash
        return self._cache.get(("number", view.id, view.head_hash, number))

    def _cache_hash(
        self, view: NetworkView, number: int, block_hash: bytes, head_hash: bytes | None
    ) -> None:
        """Cache a block hash together with the chain head it was read at."""
        if head_hash is not None:
            self._cache.put(("number", view.id, head_hash, number), block_hash)

    def _after(
        self,
        network_id: int,
        block: BlockReference,
        at_hash: Callable[[int, bytes, bool], Later[T]],
        at_number: Callable[[NetworkView, int], Later[T]],
    ) -> Later[T]:
        """Read a value after a block.

        at_hash: reads it from the network's id, the block's hash, and whether the block
            has to be canonical.
        at_number: reads it from a view of the network, and the number of a block of the
            chain with the view's head.
        """
        if block.hash is not None:
            return at_hash(network_id, block.hash, block.require_canonical)
        current = self._directory.current(network_id)
        return current.then(self._after_block_in, block, at_hash, at_number)

    def _after_block_in(
        self,
        view: NetworkView,
        block: BlockReference,
        at_hash: Callable[[int, bytes, bool], Later[T]],
        at_number: Callable[[NetworkView, int], Later[T]],
    ) -> Later[T]:
        block_hash = self._known_hash(view, block)
        if block_hash is not None:
            return at_hash(view.id, block_hash, False)
        number = number_of(block)
        read = partial(at_number, view, number)
        return self._if_reached(view, number, read).then(existing)

    def _in_row(
        self,
        row: Row | None,
        require_canonical: bool,
        read: Callable[[Sequence[bytes | None]], Later[T]],
        read_fork: Callable[[Sequence[bytes | None]], Later[T]],
        changed: Callable[[Changes], T | None],
        branch: Statement,
        asked: Sequence[bytes],
    ) -> Later[T]:
        """Return the value in a row of a block, whose last column is `is_canonical`.

        read: returns the value in the other columns.
        read_fork: returns that in a row of the branch, without `is_canonical` and diff.
        changed: returns the value in the changes of a block, None if it is not changed.
        branch, asked: the query for the blocks from a side block down to the canonical
            chain, the newest first, with its arguments. The newest block of the branch
            that changed the value has it. Without such a block it is the value where the
            branch leaves the canonical chain.
        """
        if row is None:
            raise HeaderForHashNotFound
        *columns, is_canonical = row
        if read_bool(is_canonical or b""):
            return read(columns)
        if require_canonical:
            raise NotCanonical
        rows = Later.from_future(self._connections.fetch(branch, asked))
        return rows.then(_on_branch, read_fork, changed)

    def _is_sparse(self, network_id: int) -> bool:
        """Return whether a value without a row may be unknown. Raises: Unavailable."""
        view = self._directory.get(network_id)
        if view is None:
            raise Unavailable("the network was removed")
        return view.checkpoint_number is not None

    def _if_reached(
        self, view: NetworkView, number: int, read: Callable[[], Later[T]]
    ) -> Later[T | None]:
        """Read a canonical block by its number; None if the chain is shorter.

        Fails with HistoryPruned if the block is below the oldest stored one. A number above the view's head is compared with the head in the database: another
        process may have announced a newer head a moment before this one.
        """
        if _has(view, number):
            require_stored(view, number)
            return read()
        return self._directory.reread(view.id).then(
            lambda newest: read() if _has(newest, number) else DONE
        )


def kept_from(view: NetworkView) -> int:
    """Return the number of the oldest block from which on all blocks are stored."""
    oldest = view.oldest_number or 0
    return 0 if oldest == 1 else oldest  # block 0 is stored as well


def require_stored(view: NetworkView, number: int) -> None:
    """Raise HistoryPruned if a canonical block is below the oldest stored one."""
    if 0 < number < (view.oldest_number or 0):
        raise HistoryPruned(view.oldest_number or 0)


def _on_branch(
    rows: list[Row],
    read: Callable[[Sequence[bytes | None]], Later[T]],
    changed: Callable[[Changes], T | None],
) -> Later[T]:
    for is_canonical, diff, *columns in rows:
        if read_bool(is_canonical or b""):
            return read(columns)
        if diff is not None:
            value = changed(decode_changes(diff))
            if value is not None:
                return Later(value)
    raise Unavailable("the branch does not lead to the canonical chain")


def tagged_hash(view: NetworkView, tag: str) -> bytes | None:
    """Return the hash of the block with a tag other than `earliest`.

    `pending` is the newest block, because no blocks are built here.

    Raises: TaggedBlockNotFound if the safe or the finalized block is unknown.
    """
    if tag not in ("safe", "finalized"):
        return view.head_hash
    block_hash = view.safe_hash if tag == "safe" else view.finalized_hash
    if block_hash is None and view.head_hash is not None:
        raise TaggedBlockNotFound(tag)
    return block_hash


def existing(found: T | None) -> T:
    """Return the result of a look-up by block number. Raises: HeaderNotFound if None."""
    if found is None:
        raise HeaderNotFound
    return found


def number_of(block: BlockReference) -> int:
    """Return the number of a reference by number, or 0 for `earliest`."""
    return block.number or 0


def whole_row(row: Row) -> Row:
    """Return a row unchanged."""
    return row


def _has(view: NetworkView, number: int) -> bool:
    return view.head_number is not None and number <= view.head_number


def _head_number(view: NetworkView) -> int:
    if view.head_number is None:
        raise Unavailable("the network has no blocks yet")
    return view.head_number
