from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from config.embedded import postgres
from config.embedded.postgres import PostgresServer


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


@pytest.fixture
def sql(conninfo: str) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    """A connection to look at the server from outside."""
    with psycopg.connect(conninfo, autocommit=True) as connection:
        yield connection
