"""SQL for searches in the log index.

A search reads the index of a single column, its *driver*, for one or more keys. The other
restricted columns only filter the rows that are found. There is a separate statement for
each driver with its other columns, so that PostgreSQL's plan does not depend on values. Rows of a driver's key are read in the order of the blocks; the primary
key, in the order of positions, can't replace a driver's index.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from nodeapi.logs.keys import POSITION_BITS
from postgres.statement import BYTEA, INT8, Statement

_COLUMNS = "l.position, l.transaction_index"

_FOUND = f"""
    SELECT f.position, f.transaction_index::int8, b.id,
        (SELECT octet_length(r.receipt)::int8 FROM nodeapi_transactionrecord r
         WHERE r.block_id = b.id AND r.index = f.transaction_index)
    FROM ({{rows}}) f
    JOIN nodeapi_block b ON b.network_id = $1
        AND b.number = f.position >> {POSITION_BITS} AND b.is_canonical
    ORDER BY f.position
"""
"""Completes the rows of an index: position, transaction index, block id, and size of the
packed receipt."""


@lru_cache(maxsize=256)
def search(driver: str, filters: Sequence[str], present: str) -> Statement:
    """Return the search by a driver, for logs of canonical blocks in order.

    Parameters: $1 network_id, $2 and $3 first and last block, $4 limit, $5 the driver's
    keys as bigint[], and $6 … the keys of each of `filters`.

    driver, filters: columns of the table.
    present: a column that must not be NULL, or "".
    """
    rows = f"""
        SELECT l.position, l.transaction_index
        FROM unnest($5::int8[]) AS k (key) CROSS JOIN LATERAL (
            SELECT {_COLUMNS} FROM nodeapi_log l
            WHERE l.network_id = $1 AND l.{driver} = k.key
                AND l.block_number BETWEEN $2 AND $3 {_conditions(filters, present, 6)}
            ORDER BY l.block_number, l.position LIMIT $4
        ) l
        ORDER BY l.position LIMIT $4
    """
    types = [INT8.oid] * 4 + [INT8.array_oid] * (1 + len(filters))
    return Statement(_FOUND.format(rows=rows), types)


@lru_cache(maxsize=8)
def scan(present: str) -> Statement:
    """Return the search for all logs with a minimum number of topics.

    Parameters: $1 network_id, $2 and $3 first and last position, $4 limit.

    present: a column that must not be NULL, or "".
    """
    rows = f"""
        SELECT {_COLUMNS} FROM nodeapi_log l
        WHERE l.network_id = $1 AND l.position BETWEEN $2 AND $3
            {_conditions((), present, 5)}
        ORDER BY l.position LIMIT $4
    """
    return Statement(_FOUND.format(rows=rows), [INT8.oid] * 4)


@lru_cache(maxsize=64)
def counts(drivers: Sequence[str]) -> Statement:
    """Return the query for the number of rows of each driver, up to a limit.

    Parameters: $1 network_id, $2 and $3 first and last block, $4 limit, and $5 … the
    keys of each of `drivers` as bigint[].
    """
    columns = ", ".join(
        f"""(
            SELECT count(*) FROM (
                SELECT 1 FROM unnest(${number}::int8[]) AS k (key)
                CROSS JOIN LATERAL (
                    SELECT 1 FROM nodeapi_log l
                    WHERE l.network_id = $1 AND l.{driver} = k.key
                        AND l.block_number BETWEEN $2 AND $3
                    LIMIT $4
                ) l LIMIT $4
            ) l
        )"""
        for number, driver in enumerate(drivers, 5)
    )
    types = [INT8.oid] * 4 + [INT8.array_oid] * len(drivers)
    return Statement(f"SELECT {columns}", types)


def receipts(head_bytes: int) -> Statement:
    """Return the query for receipts: $1 block ids, $2 transaction indexes.

    Both are bigint[] of the same length. Columns: packed receipt, and the first
    `head_bytes` bytes of the transaction object. The rows are in the arrays' order.
    """
    return Statement(
        f"""
        SELECT r.receipt, substring(t.document FROM 1 FOR {head_bytes})
        FROM unnest($1::int8[], $2::int8[]) WITH ORDINALITY AS k (block_id, index, n)
        JOIN nodeapi_transactionrecord r
            ON r.block_id = k.block_id AND r.index = k.index
        JOIN nodeapi_transaction t ON t.block_id = k.block_id AND t.index = k.index
        ORDER BY k.n
        """,
        [INT8.array_oid] * 2,
    )


NUMBER = Statement(
    "SELECT number FROM nodeapi_block WHERE network_id = $1 AND hash = $2",
    [INT8.oid, BYTEA.oid],
)


def _conditions(filters: Sequence[str], present: str, first: int) -> str:
    """Return conditions, each after an AND. first: number of the first parameter."""
    found = [
        f"AND l.{column} = ANY(${number}::int8[])"
        for number, column in enumerate(filters, first)
    ]
    if present:
        found.append(f"AND l.{present} IS NOT NULL")
    return " ".join(found)
