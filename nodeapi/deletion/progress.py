"""The progress of a deletion, as it is stored in `NetworkDeletion.tables`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(slots=True)
class TableProgress:
    """The progress of one table.

    table: its name in the database. label: its name on pages.
    about: number of rows when the deletion was requested.
    is_exact: whether `about` was counted and not estimated.
    clears: whether rows stay and only lose their reference to the network.
    deleted: number of rows deleted so far.
    after: key of the last row examined, None at the beginning.
    is_done: whether the table has no more rows of the network.
    """

    table: str
    label: str
    about: int = 0
    is_exact: bool = False
    clears: bool = False
    deleted: int = 0
    after: list[Any] | None = None
    is_done: bool = False

    @property
    def share(self) -> int:
        """Deleted rows as a percentage. It is below 100 until the table is done."""
        if self.is_done:
            return 100
        return min(99, 100 * self.deleted // self.about) if self.about else 0


def decode(stored: Iterable[dict[str, Any]]) -> list[TableProgress]:
    """Return the progress of each table, in the order of their deletion."""
    return [TableProgress(**entry) for entry in stored]


def encode(tables: Iterable[TableProgress]) -> list[dict[str, Any]]:
    """Return progress as JSON."""
    return [asdict(table) for table in tables]
