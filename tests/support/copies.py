"""Chains for several test modules, which one test process imports and all of them copy."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import pickle
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper

from config import demo
from evm.blocks import Block, encode_block
from tests.support import chains, sample

Rows = dict[str, bytes]
"""By table, its rows as `COPY` writes them."""

ROWS = 1_000_000
"""Ids of each table that are reserved for one copy: more than any of them has rows."""


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

    make: imports the chains. The first test process that needs them calls it, and so does
        each if there are networks. Later the rows are copied that it stored the first
        time: a tenth of the work.
    """
    with connection.cursor() as cursor:
        tables = _tables(cursor)
        if tables is None or _filled(cursor, tables):
            make()
            return
        with _shared(name) as (file, number):
            if file.exists():
                _write(cursor, pickle.loads(file.read_bytes()))
                return
            _reserve(cursor, tables, number)
            make()
            file.write_bytes(pickle.dumps(_read(cursor, _filled(cursor, tables))))


@contextmanager
def _shared(name: object) -> Iterator[tuple[Path, int]]:
    """Lock the file of a copy, which all test processes share. Yield it and its number.

    A process that has failed to make the copy leaves no file.
    """
    folder = Path(os.environ["TESTS_SHARED_DIR"]) / "copies"
    folder.mkdir(exist_ok=True)
    digest = hashlib.sha256(repr(name).encode()).hexdigest()
    with (folder / "names").open("a+") as names:
        fcntl.flock(names, fcntl.LOCK_EX)
        names.seek(0)
        known = names.read().split()
        if digest not in known:
            known.append(digest)
            names.write(f"{digest}\n")
    with (folder / f"{digest}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder / digest, known.index(digest) + 1


def _reserve(cursor: CursorWrapper, tables: list[str], number: int) -> None:
    """Let the next rows of each table have ids that no other process gives.

    Processes remember facts of networks and blocks by id.
    """
    cursor.execute(
        "SELECT setval(pg_get_serial_sequence(table_name, 'id'), %s)"
        " FROM information_schema.columns"
        " WHERE table_schema = 'public' AND column_name = 'id' AND table_name = ANY(%s)",
        [number * ROWS, tables],
    )


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
