"""The importer's own database connection, and the lock that excludes other importers."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, LiteralString

import psycopg
from django.db import connection as django_connection

_LOCK_SPACE = 0x504F5254  # "PORT"
"""First key of our advisory locks. The second one is the network's id."""

LOCK_POLL_SECONDS = 0.25
"""Time between two attempts to get an import lock."""


class ImportRunning(RuntimeError):
    """Raised when another process is importing into the same network."""


@contextmanager
def importer_connection() -> Iterator[psycopg.Connection[Any]]:
    """Open a new connection to Django's database for a `with` block."""
    with psycopg.connect(**connection_parameters(), autocommit=True) as connection:
        yield connection


def connection_parameters() -> dict[str, Any]:
    """Return the parameters of `psycopg.connect` for Django's database."""
    parameters = django_connection.get_connection_params()
    for name in ("cursor_factory", "context"):
        parameters.pop(name, None)
    return parameters


class Pipeline:
    """A connection in pipeline mode: queries are sent without waiting for their results.

    PostgreSQL executes them while the caller computes.
    Source: https://www.psycopg.org/psycopg3/docs/advanced/pipeline.html
    """

    def __init__(
        self, connection: psycopg.Connection[Any], pipeline: psycopg.Pipeline
    ) -> None:
        self._connection = connection
        self._pipeline = pipeline

    def send(self, query: LiteralString, values: Sequence[Any]) -> psycopg.Cursor[Any]:
        """Send a query. The cursor has its rows after the next `sync`."""
        return self._connection.execute(query, values, binary=True, prepare=True)

    def sync(self) -> None:
        """Wait for the results of all queries that were sent."""
        self._pipeline.sync()


@contextmanager
def pipeline() -> Iterator[Pipeline]:
    """Open a connection in pipeline mode, and close it after the `with` block."""
    with importer_connection() as connection, connection.pipeline() as opened:
        yield Pipeline(connection, opened)


@contextmanager
def import_lock(
    connection: psycopg.Connection[Any], network_id: int, *, wait: bool = False
) -> Iterator[None]:
    """Hold a network's import lock. PostgreSQL releases it when the connection ends.

    wait: try again every LOCK_POLL_SECONDS until the lock is free. A statement that
        waits in PostgreSQL would hold a snapshot all the time, and CREATE INDEX
        CONCURRENTLY would wait for it.

    Raises: ImportRunning if another connection holds the lock, unless `wait` is set.
    """
    while not _try_lock(connection, network_id):
        if not wait:
            raise ImportRunning("another import into this network is running")
        time.sleep(LOCK_POLL_SECONDS)
    try:
        yield
    finally:
        if not connection.closed:
            connection.execute(
                "SELECT pg_advisory_unlock(%s, %s)", (_LOCK_SPACE, network_id)
            )


def _try_lock(connection: psycopg.Connection[Any], network_id: int) -> bool:
    row = connection.execute(
        "SELECT pg_try_advisory_lock(%s, %s)", (_LOCK_SPACE, network_id)
    ).fetchone()
    return row is not None and bool(row[0])
