"""The database connection of a worker process."""

from __future__ import annotations

from typing import Any

import psycopg

CONNECT_SECONDS = 5
"""Time limit for connecting."""


def connect(conninfo: str) -> psycopg.Connection[Any]:
    """Return a connection in autocommit mode. Its queries end when it is closed.

    Otherwise PostgreSQL would execute the query of a killed process to its end.

    conninfo: connection string of libpq. Raises: psycopg.OperationalError.
    """
    connection = psycopg.connect(
        conninfo, autocommit=True, connect_timeout=CONNECT_SECONDS
    )
    connection.execute("SET client_connection_check_interval = '1s'")
    return connection
