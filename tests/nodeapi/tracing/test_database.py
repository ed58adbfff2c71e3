"""The database connection of a worker process."""

from __future__ import annotations

import psycopg
import pytest

from nodeapi.node import database_conninfo
from nodeapi.tracing.worker import connect
from tests.support.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)


def test_query_of_a_closed_connection_ends() -> None:
    conninfo = database_conninfo()
    with psycopg.connect(conninfo, autocommit=True) as other:

        def is_active() -> bool:
            row = other.execute(
                "SELECT state = 'active' FROM pg_stat_activity WHERE pid = %s", (pid,)
            ).fetchone()
            return row is not None and bool(row[0])

        connection = connect(conninfo)
        pid = connection.info.backend_pid
        connection.pgconn.send_query(b"SELECT pg_sleep(600)")
        wait_until(is_active)
        connection.close()  # as when its process is killed
        wait_until(lambda: not is_active())
