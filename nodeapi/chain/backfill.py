"""Backfilling an index: adding the rows of blocks that were stored before it existed.

A table has a row for each network with such blocks: the number below which canonical
blocks have no rows in the index. Blocks are indexed from the newest to block 0, while
imports and reorganisations go on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, LiteralString

if TYPE_CHECKING:
    import psycopg


class Backfill:
    """The blocks of one network that have no rows in an index yet.

    table: has the columns `network_id` and `missing_below`.
    """

    def __init__(
        self, connection: psycopg.Connection[Any], network_id: int, table: LiteralString
    ) -> None:
        self._connection = connection
        self._network_id = network_id
        self._table = table

    def leave_above(self, number: int) -> None:
        """Record that all blocks above a number get rows from now on.

        A reorganisation does so in its transaction, after which the blocks that become
        canonical have rows. It waits for a running `index`, and `index` waits for it.
        """
        self._connection.execute(
            f"UPDATE {self._table} SET missing_below = %b"
            " WHERE network_id = %b AND missing_below > %b",
            (number + 1, self._network_id, number + 1),
        )

    def index(self, blocks: int, insert: Callable[[Sequence[int]], None]) -> int | None:
        """Index some blocks, the newest ones without rows, in one transaction.

        blocks: their maximum number.
        insert: inserts the rows of blocks, whose ids it gets. Its errors are raised, and
            nothing is changed.

        Returns: the block number below which rows are still missing, or None.
        """
        with self._connection.transaction():
            row = self._connection.execute(
                f"SELECT missing_below FROM {self._table}"
                " WHERE network_id = %b FOR UPDATE",
                (self._network_id,),
            ).fetchone()
            if row is None:
                return None
            end = int(row[0])
            begin = max(end - blocks, 0)
            ids = self._connection.execute(
                "SELECT id FROM nodeapi_block WHERE network_id = %b AND is_canonical"
                " AND number >= %b AND number < %b",
                (self._network_id, begin, end),
            ).fetchall()
            insert([block_id for (block_id,) in ids])
            if begin == 0:
                self._connection.execute(
                    f"DELETE FROM {self._table} WHERE network_id = %b",
                    (self._network_id,),
                )
                return None
            self._connection.execute(
                f"UPDATE {self._table} SET missing_below = %b WHERE network_id = %b",
                (begin, self._network_id),
            )
        return begin
