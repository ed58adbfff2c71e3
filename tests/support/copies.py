"""Chains for several test modules, which each test process imports once and copies."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper

from config import demo
from evm.blocks import Block, encode_block
from tests.support import chains, sample

Rows = dict[str, bytes]
"""By table, its rows as `COPY` writes them."""

_COPIES: dict[object, Rows] = {}


def sample_chain(slug: str = "sample", blocks: int | None = None) -> None:
    """Store the sample chain as a network. blocks: number of its first ones; None for all."""
    chain(slug, sample.genesis(), sample.raw_blocks()[:blocks])


def chain(slug: str, genesis: dict[str, Any], blocks: Iterable[Block | bytes]) -> None:
    """Store a chain as a network."""
    raw = [b if isinstance(b, bytes) else encode_block(b) for b in blocks]
    text = json.dumps(genesis, sort_keys=True)
    once(
        (slug, text, *raw),
        lambda: chains.import_blocks(slug, genesis, raw),
    )


def demo_chain() -> None:
    """Store the sample chain as `manage.py serve` does."""
    once("demo", demo.import_sample_chain)


def once(name: object, make: Callable[[], None]) -> None:
    """Store chains in a database without networks, which no service reads yet.

    make: imports the chains. It is called the first time, and if there are networks. Later
        the rows are copied that it stored the first time: a tenth of the work.
    """
    with connection.cursor() as cursor:
        tables = _tables(cursor)
        if tables is None or _filled(cursor, tables):
            make()
        elif name in _COPIES:
            _write(cursor, _COPIES[name])
        else:
            make()
            _COPIES[name] = _read(cursor, _filled(cursor, tables))


def _tables(cursor: CursorWrapper) -> list[str] | None:
    """Return the tables of chains, None if our database role may not copy their rows."""
    cursor.execute("SELECT rolsuper FROM pg_roles WHERE rolname = current_user")
    if cursor.fetchone() != (True,):
        return None
    cursor.execute(
        "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
        " AND (tablename LIKE 'nodeapi%' OR tablename LIKE 'networks%') ORDER BY 1"
    )
    return [row[0] for row in cursor.fetchall()]


def _filled(cursor: CursorWrapper, tables: list[str]) -> list[str]:
    """Return the tables with rows."""
    found = ", ".join(f"EXISTS (SELECT FROM {table})" for table in tables)
    cursor.execute(f"SELECT {found}")
    has_rows = cursor.fetchone() or ()
    return [table for table, some in zip(tables, has_rows, strict=True) if some]


def _read(cursor: CursorWrapper, tables: list[str]) -> Rows:
    rows = {}
    for table in tables:
        with cursor.copy(f"COPY {table} TO STDOUT (FORMAT binary)") as copy:
            rows[table] = b"".join(copy)
    return rows


def _write(cursor: CursorWrapper, rows: Rows) -> None:
    with transaction.atomic():
        # The rows were checked when they were imported. Triggers and foreign keys are
        # disabled.
        cursor.execute("SET LOCAL session_replication_role = replica")
        for table, data in rows.items():
            with cursor.copy(f"COPY {table} FROM STDIN (FORMAT binary)") as copy:
                copy.write(data)
