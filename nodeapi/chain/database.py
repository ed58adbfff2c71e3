"""The importer's own connection to the database, and the lock that makes it the only one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

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
