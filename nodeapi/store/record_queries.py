"""SQL for transactions: trace records, receipts, and the transactions themselves.

`k` is the table of requested keys, see `postgres.lookup.Lookup`. Queries with $1 … are
executed separately. They read parts of long results by the block's id.
"""

from __future__ import annotations

from typing import Literal

RecordKind = Literal["calls", "prestate"]
"""A record that is a tracer's answer: callTracer's, prestateTracer's."""

_BY_HASH = "nodeapi_block b ON b.network_id = k.network_id AND b.hash = k.hash"

_HEAD_HASH = "(SELECT head_hash FROM networks_network WHERE id = k.network_id)"

_RECORDS = """
    nodeapi_transactionrecord r JOIN nodeapi_transaction t
        ON t.block_id = r.block_id AND t.index = r.index
"""

_SPAN = "r.block_id = b.id AND r.index BETWEEN k.first AND k.last"

_TRANSACTIONS_SPAN = "t.block_id = b.id AND t.index BETWEEN k.first AND k.last"

_TRANSACTION = {"calls": "t.document", "prestate": "''::bytea"}
"""Column of the transaction that completes a record."""


def short_trace(kind: RecordKind, max_size: int) -> str:
    """Return the query (network_id, hash, first, last) → id, count, size, and arrays.

    count, size: number of the transactions first … last, and size of their results.

    If the size exceeds `max_size`, the arrays `hashes`, `documents` and `records` are
    NULL and not read. Both tables are read as ranges, which is faster than a look-up of
    each row.
    """
    return f"""
        SELECT k.n, b.id, s.count, s.size, t.hashes, t.documents, r.records
        FROM k JOIN {_BY_HASH}
        CROSS JOIN LATERAL (
            SELECT count(*) AS count,
                coalesce(sum(r.{kind}_size), 0)::int8 AS size
            FROM nodeapi_transactionrecord r WHERE {_SPAN}
        ) s
        CROSS JOIN LATERAL (
            SELECT string_agg(t.hash, ''::bytea ORDER BY t.index) AS hashes,
                array_agg({_TRANSACTION[kind]} ORDER BY t.index) AS documents
            FROM nodeapi_transaction t
            WHERE {_TRANSACTIONS_SPAN} AND s.size <= {max_size}
        ) t
        CROSS JOIN LATERAL (
            SELECT array_agg(r.{kind} ORDER BY r.index) AS records
            FROM nodeapi_transactionrecord r WHERE {_SPAN} AND s.size <= {max_size}
        ) r
    """


def plan(kind: RecordKind) -> str:
    """Return the query ($1 id, $2 first, $3 last) → two arrays: result sizes, weights.

    weight: bytes of the transaction's row in the result of `group`.
    """
    return f"""
        SELECT array_agg(r.{kind}_size ORDER BY r.index),
            array_agg(
                (octet_length(r.{kind}) + octet_length({_TRANSACTION[kind]}))::int8
                ORDER BY r.index
            )
        FROM {_RECORDS} WHERE r.block_id = $1 AND r.index BETWEEN $2 AND $3
    """


def group(kind: RecordKind) -> str:
    """Return the query $1 id, $2 first, $3 last → arrays: hashes, records, documents."""
    return f"""
        SELECT array_agg(t.hash ORDER BY r.index),
            array_agg(r.{kind} ORDER BY r.index),
            array_agg({_TRANSACTION[kind]} ORDER BY r.index)
        FROM {_RECORDS} WHERE r.block_id = $1 AND r.index BETWEEN $2 AND $3
    """


def head(kind: RecordKind) -> str:
    """Return the query $1 id, $2 index → hash, document, length of the record."""
    return f"""
        SELECT t.hash, {_TRANSACTION[kind]}, octet_length(r.{kind})::int8
        FROM {_RECORDS} WHERE r.block_id = $1 AND r.index = $2
    """


def record_part(kind: RecordKind) -> str:
    """Return the query $1 id, $2 index, $3 offset from 1, $4 length → bytes."""
    return f"""
        SELECT substring(r.{kind} FROM $3::int4 FOR $4::int4)
        FROM nodeapi_transactionrecord r WHERE r.block_id = $1 AND r.index = $2
    """


TRACE_SIZES = f"""
    SELECT k.n, b.transaction_count::int8, s.calls, s.prestate, s.largest
    FROM k JOIN {_BY_HASH}
    CROSS JOIN LATERAL (
        SELECT coalesce(sum(r.calls_size), 0)::int8 AS calls,
            coalesce(sum(r.prestate_size), 0)::int8 AS prestate,
            coalesce(max(greatest(r.calls_size, r.prestate_size)), 0) AS largest
        FROM nodeapi_transactionrecord r WHERE {_SPAN}
    ) s
"""
"""(network_id, hash, first, last) → number of the block's transactions; for first …
last: bytes of callTracer's and of prestateTracer's results, and of the longest one."""

RECORDS_PLAN = f"""
    SELECT k.n, b.id, b.number, (
        SELECT array_agg(
            (octet_length(t.document) + octet_length(r.details)
                + CASE WHEN k.calls > 0 THEN octet_length(r.calls) ELSE 0 END
                + CASE WHEN k.prestate > 0 THEN octet_length(r.prestate) ELSE 0 END
            )::int8 ORDER BY r.index)
        FROM {_RECORDS} WHERE {_SPAN}
    )
    FROM k JOIN {_BY_HASH}
"""
"""(network_id, hash, first, last, calls, prestate) → block's id and number, array of
weights of the rows of RECORDS_GROUP. calls, prestate: 1 to include these records,
otherwise 0."""

RECORDS_GROUP = f"""
    SELECT array_agg(t.hash ORDER BY r.index),
        array_agg(t.document ORDER BY r.index),
        array_agg(CASE WHEN $4 > 0 THEN r.calls ELSE ''::bytea END ORDER BY r.index),
        array_agg(CASE WHEN $5 > 0 THEN r.prestate ELSE ''::bytea END ORDER BY r.index),
        array_agg(r.details ORDER BY r.index)
    FROM {_RECORDS} WHERE r.block_id = $1 AND r.index BETWEEN $2 AND $3
"""
"""$1 id, $2 first, $3 last, $4 and $5: 1 to include calls, prestate, otherwise 0 →
arrays: hashes, documents, calls, prestates, details."""

CODE = "SELECT k.n, c.code FROM k JOIN nodeapi_code c ON c.hash = k.hash"
"""(hash) → code."""

_PLACE = """
    JOIN LATERAL (
        SELECT b.id, b.hash, b.number, t.index, t.document
        FROM nodeapi_transaction t JOIN nodeapi_block b ON b.id = t.block_id
        WHERE t.hash = k.hash AND b.network_id = k.network_id AND b.is_canonical
        LIMIT 1
    ) p ON true
"""

PLACE = f"SELECT k.n, p.hash, p.number, p.index, {_HEAD_HASH} FROM k {_PLACE}"
"""(network_id, hash of a transaction) → hash, number, index, head_hash."""

TRANSACTION_BY_HASH = f"""
    SELECT k.n, p.hash, p.number, p.index, {_HEAD_HASH}, p.document FROM k {_PLACE}
"""
"""(network_id, hash of a transaction) → hash, number, index, head_hash, document."""


def receipt_by_hash(head_bytes: int) -> str:
    """Return the query (network_id, transaction hash) → PLACE, receipt, document.

    PLACE stands for several columns. The receipt is packed. The document is the first
    `head_bytes` bytes of the transaction object.
    """
    return f"""
        SELECT k.n, p.hash, p.number, p.index, {_HEAD_HASH}, r.receipt,
            substring(p.document FROM 1 FOR {head_bytes})
        FROM k {_PLACE}
        JOIN nodeapi_transactionrecord r ON r.block_id = p.id AND r.index = p.index
    """


def short_receipts(head_bytes: int, max_weight: int) -> str:
    """Return the query (network_id, hash) → id, weights, receipts, documents.

    The last three are arrays. weights: sizes of the packed receipts. documents: their
    first `head_bytes` bytes. If the total weight exceeds max_weight, receipts and
    documents are NULL.
    """
    return f"""
        SELECT k.n, b.id, s.weights, w.receipts, w.heads
        FROM k JOIN {_BY_HASH}
        CROSS JOIN LATERAL (
            SELECT array_agg(octet_length(r.receipt)::int8 ORDER BY r.index) AS weights,
                coalesce(sum(octet_length(r.receipt)), 0) AS weight
            FROM nodeapi_transactionrecord r WHERE r.block_id = b.id
        ) s
        CROSS JOIN LATERAL (
            SELECT array_agg(r.receipt ORDER BY r.index) AS receipts,
                array_agg(substring(t.document FROM 1 FOR {head_bytes})
                    ORDER BY r.index) AS heads
            FROM {_RECORDS} WHERE r.block_id = b.id AND s.weight <= {max_weight}
        ) w
    """


def receipts(head_bytes: int) -> str:
    """Return the query $1 id, $2 first, $3 last → arrays: receipts, documents' heads."""
    return f"""
        SELECT array_agg(r.receipt ORDER BY r.index),
            array_agg(substring(t.document FROM 1 FOR {head_bytes}) ORDER BY r.index)
        FROM {_RECORDS} WHERE r.block_id = $1 AND r.index BETWEEN $2 AND $3
    """


RAW_BLOCK = f"SELECT k.n, b.header, b.body FROM k JOIN {_BY_HASH}"
"""(network_id, hash) → header, body."""

RAW_TRANSACTION = f"""
    SELECT k.n, p.index, (SELECT body FROM nodeapi_block WHERE id = p.id)
    FROM k {_PLACE}
"""
"""(network_id, hash of a transaction) → index, body of its block."""

RAW_TRANSACTION_AT = f"""
    SELECT k.n, t.index, b.body FROM k JOIN {_BY_HASH}
    JOIN nodeapi_transaction t ON t.block_id = b.id AND t.index = k.index
"""
"""(network_id, hash, index) → index, body of the block."""
