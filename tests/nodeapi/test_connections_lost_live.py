"""Connections whose clients disconnect while their requests are pending."""

from __future__ import annotations

import time

import psutil
import pytest
from django.db import connection, transaction

from keys.models import ApiKey
from tests.nodeapi.test_memory_bounds_live import ask, connect, head_of
from tests.support import chains, sample
from tests.support.live import Live, live_service
from tests.support.waiting import wait_until

GIVEN = {"X-Forwarded-For": "192.0.2.1"}


@pytest.mark.parametrize("limit", ["KEY", "ADDRESS"])
def test_clients_that_leave_while_their_key_is_looked_up_are_not_counted(
    module_db: None, limit: str
) -> None:
    chains.import_blocks("sample", sample.genesis(), sample.raw_blocks()[:1])
    with live_service(env={f"CONNECTIONS_PER_{limit}": "5"}) as live:
        key = live.new_key()
        with transaction.atomic(), connection.cursor() as cursor:
            table = connection.ops.quote_name(ApiKey._meta.db_table)
            cursor.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
            for _ in range(6):
                with connect(live, "127.0.0.1") as client:
                    client.sendall(head_of(key, 2, **GIVEN) + b"[]")
                    time.sleep(0.1)  # the look-up of its key is in progress by now
            wait_until(lambda: not has_clients(live))
        with connect(live, "127.0.0.1") as client:
            assert ask(live, client, key, **GIVEN) == 200


def has_clients(live: Live) -> bool:
    """Return whether the only worker has connections on the service's port."""
    port = live.server.listeners[0].getsockname()[1]
    return any(
        each.laddr.port == port and each.status == psutil.CONN_ESTABLISHED
        for each in psutil.Process(live.server.pids[0]).net_connections()
    )
