"""Reads of the blocks that were added and removed since a block."""

from __future__ import annotations

from dataclasses import dataclass

from nodeapi.store.base import Reads
from postgres.statement import (
    BYTEA,
    INT8,
    Statement,
    int8,
    read_bool,
    read_int8,
)

BlockId = tuple[int, bytes]
"""Number and hash of a block."""

MAX_CHANGED_BLOCKS = 1000
"""Maximum number of added blocks that one `changes_since` reads."""

CHANGES = Statement(
    """
    WITH RECURSIVE line AS (
        SELECT b.network_id, b.number, b.hash, b.parent_hash, b.is_canonical
        FROM nodeapi_block b WHERE b.network_id = $1 AND b.hash = $2
        UNION ALL
        SELECT p.network_id, p.number, p.hash, p.parent_hash, p.is_canonical
        FROM line JOIN nodeapi_block p
            ON p.network_id = line.network_id AND p.hash = line.parent_hash
        WHERE NOT line.is_canonical
    )
    SELECT number, hash, is_canonical, false FROM line
    UNION ALL (
        SELECT b.number, b.hash, true, true FROM nodeapi_block b
        WHERE b.network_id = $1 AND b.is_canonical
            AND b.number > (SELECT number FROM line WHERE is_canonical)
        ORDER BY b.number LIMIT $3
    )
    """,
    [INT8.oid, BYTEA.oid, INT8.oid],
)
"""network_id, hash of a block, limit → the block and its ancestors down to a canonical
block, and the canonical blocks above that one: number, hash, is_canonical, is_added.

The fork point is a scalar subquery, so that the blocks above it are read in the order of an
index. As a join, it could be compared with every block of the chain."""


@dataclass(frozen=True, slots=True)
class BlockChanges:
    """The changes of the canonical chain since a block was its head.

    fork: the newest block of both chains.
    removed, added: blocks above it, in ascending order.
    """

    fork: BlockId
    removed: list[BlockId]
    added: list[BlockId]

    @property
    def newest(self) -> BlockId:
        """The newest of the added blocks, or the fork block if none was added."""
        return self.added[-1] if self.added else self.fork


class ChangeReads(Reads):
    """Reads of changes of the canonical chain."""

    async def changes_since(
        self, network_id: int, block_hash: bytes, limit: int = MAX_CHANGED_BLOCKS
    ) -> BlockChanges | None:
        """Return the changes since a block was the head, as of one moment.

        limit: maximum number of added blocks.

        Returns: None if the block is not stored any more.
        Raises: Unavailable.
        """
        rows = await self._connections.fetch(
            CHANGES, [int8(network_id), block_hash, int8(limit)]
        )
        removed: list[BlockId] = []
        added: list[BlockId] = []
        fork: BlockId | None = None
        for number, found_hash, is_canonical, is_added in rows:
            block = read_int8(number or b""), found_hash or b""
            if read_bool(is_added or b""):
                added.append(block)
            elif read_bool(is_canonical or b""):
                fork = block
            else:
                removed.append(block)
        if fork is None:
            return None
        return BlockChanges(fork, sorted(removed), sorted(added))
