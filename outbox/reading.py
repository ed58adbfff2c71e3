"""Reads the new entries of many streams with one statement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from postgres.connections import Connections
from postgres.statement import INT8, TEXT, UUID, Row, Statement, array, read_int8

MAX_BEHIND = 1000
"""Most entries of a stream that are read. A subscriber further behind reloads."""

_CHANGES = Statement(
    f"""
    SELECT w.name, s.epoch, s.last_number, e.number, e.subject
    FROM unnest($1, $2, $3) AS w (name, epoch, number)
    LEFT JOIN outbox_stream s ON s.name = w.name
    LEFT JOIN LATERAL (
        SELECT entry.number, entry.subject FROM outbox_entry entry
        WHERE entry.stream = s.name
            AND entry.number > w.number AND entry.number <= s.last_number
            AND s.last_number - w.number <= {MAX_BEHIND}
            AND (s.epoch = w.epoch OR w.number = 0)
        ORDER BY entry.number
    ) e ON true
    WHERE s.epoch <> w.epoch OR s.last_number <> w.number
        OR (s.name IS NULL AND w.number <> 0)
    """,
    [TEXT.array_oid, UUID.array_oid, INT8.array_oid],
)


@dataclass(frozen=True, slots=True)
class Position:
    """The newest entry of a stream that was read.

    epoch: 16 bytes. number: 0 before the first entry.
    """

    epoch: bytes
    number: int


UNKNOWN = Position(bytes(16), -1)
"""The position of a stream that has not been read yet."""

EMPTY = Position(bytes(16), 0)
"""The position of a stream without any entry."""


@dataclass(frozen=True, slots=True)
class News:
    """The entries of a stream after a position.

    subjects: the subjects of the entries, in the order of their numbers. None if the
        entries are unknown, so that all data has to be read again.
    """

    position: Position
    subjects: list[str] | None


async def read_news(
    connections: Connections, positions: Mapping[str, Position]
) -> dict[str, News]:
    """Return the new entries of the streams that have any.

    positions: stream → position after which entries are new.
    Raises: Unavailable.
    """
    places = positions.values()
    rows = await connections.fetch(
        _CHANGES,
        [
            array(TEXT, positions, len(positions)),
            array(UUID, (place.epoch for place in places), len(positions)),
            array(INT8, (place.number for place in places), len(positions)),
        ],
    )
    by_stream: dict[str, list[Row]] = {}
    for row in rows:
        by_stream.setdefault((row[0] or b"").decode(), []).append(row)
    return {
        name: _news(positions[name], entries) for name, entries in by_stream.items()
    }


def _news(before: Position, rows: list[Row]) -> News:
    """Return the news of a stream from the rows of its entries, at least one row."""
    _, epoch, last_number, _, _ = rows[0]
    if epoch is None or last_number is None:  # there is no such stream
        return News(EMPTY, None)
    position = Position(epoch, read_int8(last_number))
    subjects = [(row[4] or b"").decode() for row in rows if row[3] is not None]
    # Numbers are unique, hence none is missing if there are as many as there should be.
    is_complete = 0 < len(subjects) == position.number - before.number
    is_continued = before.epoch == epoch or before == EMPTY
    return News(position, subjects if is_complete and is_continued else None)
