from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from config.embedded import postgres
from config.embedded.postgres import PostgresServer
from tests.support.waiting import until


@pytest.fixture(scope="session")
def server() -> Iterator[PostgresServer]:
    """A PostgreSQL for the tests of this package, which they may stop and start."""
    var_dir = Path(tempfile.mkdtemp(prefix="portcullis-postgres-"))
    server = PostgresServer(var_dir)
    try:
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(var_dir)


@pytest.fixture
def conninfo(server: PostgresServer) -> str:
    """The address of that server, which runs."""
    server.start()
    return postgres.address(server.folder.parent)


class Gate:
    """An advisory lock on which queries wait until it is released."""

    SQL = "LATERAL (SELECT pg_advisory_xact_lock_shared(7)) gate"

    def __init__(self, sql: psycopg.Connection[tuple[object, ...]]) -> None:
        self._sql = sql
        sql.execute("SELECT pg_advisory_lock(7)")

    def open(self) -> None:
        """Release all waiting and later queries."""
        self._sql.execute("SELECT pg_advisory_unlock(7)")

    async def holds(self, count: int) -> None:
        """Wait until `count` queries are waiting."""
        waiting = (
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        )
        await until(lambda: self._sql.execute(waiting).fetchone() == (count,))


@pytest.fixture
def gate(sql: psycopg.Connection[tuple[object, ...]]) -> Gate:
    """Return a closed gate."""
    return Gate(sql)


@pytest.fixture
def sql(conninfo: str) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    """Return a separate connection, with which a test observes the server."""
    with psycopg.connect(conninfo, autocommit=True) as connection:
        yield connection
