"""The importer's own connection to the database, and the lock that makes it the only one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, LiteralString

import psycopg
from django.db import connection as django_connection

_LOCK_SPACE = (
    0x504F5254  # "PORT": advisory locks of ours, the second key is the network
)


class ImportRunning(RuntimeError):
    """Raised when another process imports into the same network."""


@contextmanager
def importer_connection() -> Iterator[psycopg.Connection[Any]]:
    """Give a connection beside Django's, to the same database."""
    parameters = django_connection.get_connection_params()
    for name in ("cursor_factory", "context"):
        parameters.pop(name, None)
    with psycopg.connect(**parameters, autocommit=True) as connection:
        yield connection


class Questions:
    """A connection that is asked now and listened to later, of its own for that.

    PostgreSQL works meanwhile, and so does who asked.
    """

    def __init__(
        self, connection: psycopg.Connection[Any], pipeline: psycopg.Pipeline
    ) -> None:
        self._connection = connection
        self._pipeline = pipeline

    def ask(self, query: LiteralString, values: Sequence[Any]) -> psycopg.Cursor[Any]:
        """Send a query; the cursor has its rows after `settle`."""
        return self._connection.execute(query, values, binary=True, prepare=True)

    def settle(self) -> None:
        """Wait for the answers to all that was asked."""
        self._pipeline.sync()


@contextmanager
def questions() -> Iterator[Questions]:
    """Give a connection for questions."""
    with importer_connection() as connection, connection.pipeline() as pipeline:
        yield Questions(connection, pipeline)


@contextmanager
def import_lock(connection: psycopg.Connection[Any], network_id: int) -> Iterator[None]:
    """Hold a network's import lock; PostgreSQL frees it when the connection ends.

    Raises: ImportRunning when another connection holds it.
    """
    row = connection.execute(
        "SELECT pg_try_advisory_lock(%s, %s)", (_LOCK_SPACE, network_id)
    ).fetchone()
    if row is None or not row[0]:
        raise ImportRunning("another import into this network is running")
    try:
        yield
    finally:
        if not connection.closed:
            connection.execute(
                "SELECT pg_advisory_unlock(%s, %s)", (_LOCK_SPACE, network_id)
            )
