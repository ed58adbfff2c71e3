"""The log index of a network: rows for the logs of canonical blocks.

The rows of a block are written in the transaction in which it becomes canonical, and
deleted in the one in which it stops being so. They follow from the stored receipts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from struct import Struct
from typing import TYPE_CHECKING, Any, NamedTuple

from nodeapi.documents.receipts import log_members, split_logs, stored_logs
from nodeapi.logs.keys import MAX_TOPICS, POSITION_BITS, event_key, key

if TYPE_CHECKING:
    import psycopg

    from evm.receipts import Receipt

BLOCKS_AT_ONCE = 32
"""Number of blocks whose rows are created from stored receipts at once."""


class LogRow(NamedTuple):
    """A log of a block."""

    transaction_index: int
    address: bytes
    topics: Sequence[bytes]


_COPY = (
    "COPY nodeapi_log (network_id, position, block_number, transaction_index, address,"
    " event, topic0, topic1, topic2, topic3) FROM STDIN (FORMAT BINARY)"
)

# PostgreSQL's binary COPY format: each row begins with the number of its columns, each
# column with its length, -1 for NULL.
# Source: https://www.postgresql.org/docs/current/sql-copy.html
_HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_TRAILER = b"\xff\xff"
_COLUMNS = 10
_PLACE = "hiqiqiqii"
_ROWS = [
    Struct(f"!{_PLACE}{'iq' * (1 + bool(topics) + topics)}") for topics in range(5)
]
"""Encoders of a row without its trailing NULL columns, by the number of topics."""
_NULLS = [
    Struct("!i").pack(-1) * (MAX_TOPICS - topics + (not topics)) for topics in range(5)
]


def log_rows(receipts: Iterable[Receipt]) -> list[LogRow]:
    """Return the logs of a block in order. receipts: of its transactions, in order."""
    return [
        LogRow(index, log.address, log.topics)
        for index, receipt in enumerate(receipts)
        for log in receipt.logs
    ]


def insert_logs(
    connection: psycopg.Connection[Any],
    network_id: int,
    blocks: Iterable[tuple[int, Sequence[LogRow]]],
) -> None:
    """Insert the log index's rows of blocks. blocks: pairs of number and all logs."""
    parts = [
        _encode(network_id, number, index, row)
        for number, rows in blocks
        for index, row in enumerate(rows)
    ]
    if parts:
        with connection.cursor() as cursor, cursor.copy(_COPY) as copy:
            copy.write(b"".join([_HEADER, *parts, _TRAILER]))


def insert_stored_logs(
    connection: psycopg.Connection[Any], network_id: int, block_ids: Sequence[int]
) -> None:
    """Insert the log index's rows of stored blocks, from their receipts.

    Raises: ValueError if a stored receipt is damaged.
    """
    for start in range(0, len(block_ids), BLOCKS_AT_ONCE):
        ids = block_ids[start : start + BLOCKS_AT_ONCE]
        insert_logs(connection, network_id, list(_stored_blocks(connection, ids)))


def delete_logs_above(
    connection: psycopg.Connection[Any], network_id: int, number: int
) -> None:
    """Delete the rows of the blocks above a number."""
    connection.execute(
        "DELETE FROM nodeapi_log WHERE network_id = %b AND position >= %b",
        (network_id, (number + 1) << POSITION_BITS),
    )


def _encode(network_id: int, number: int, index: int, row: LogRow) -> bytes:
    """Return a row in the binary format of COPY."""
    transaction_index, address, topics = row
    event = event_key(address, topics)
    columns = [
        *(_COLUMNS, 8, network_id, 8, number << POSITION_BITS | index, 8, number),
        *(4, transaction_index, 8, key(address)),
    ]
    if event is not None:
        columns += [8, event]
        for topic in topics:
            columns += [8, key(topic)]
    count = len(topics)
    return _ROWS[count].pack(*columns) + _NULLS[count]


def _stored_blocks(
    connection: psycopg.Connection[Any], block_ids: Sequence[int]
) -> Iterator[tuple[int, list[LogRow]]]:
    """Yield number and logs of stored blocks."""
    with connection.cursor("stored_receipts", binary=True) as cursor:
        cursor.itersize = 100
        cursor.execute(
            "SELECT b.number, r.index, r.receipt FROM nodeapi_block b"
            " JOIN nodeapi_transactionrecord r ON r.block_id = b.id"
            " WHERE b.id = ANY(%s) ORDER BY b.number, r.index",
            (list(block_ids),),
        )
        for number, receipts in groupby(cursor, key=lambda row: int(row[0])):
            try:
                rows = [
                    _stored_row(index, log)
                    for _, index, receipt in receipts
                    for log in split_logs(stored_logs(receipt))
                ]
            except ValueError as error:
                raise ValueError(f"block {number}: {error}") from error
            yield number, rows


def _stored_row(transaction_index: int, log: bytes) -> LogRow:
    address, topics = log_members(log)
    return LogRow(
        transaction_index,
        bytes.fromhex(address[2:]),
        [bytes.fromhex(topic[2:]) for topic in topics],
    )
