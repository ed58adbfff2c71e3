"""A key that is deleted in one window while another window changes it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection, connections, transaction

from keys.services import delete_key
from tests.keys.dashboard.conftest import Customer, text
from tests.support.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)

FORMS = {
    "rename": {"name": "Another name"},
    "disable": {},
    "enable": {},
    "delete": {"typed": "First"},
    "roll": {"overlap": "0"},
    "allowlists": {"typed-ip": "192.0.2.1"},
    "tracing/alpha": {"tracers": "callTracer", "reason": "to see"},
}

WAITING = "SELECT count(*) FROM pg_locks WHERE NOT granted"


def is_waited_for() -> bool:
    """Return whether another connection waits for a lock of this transaction."""
    with connection.cursor() as cursor:
        cursor.execute(WAITING)
        return cursor.fetchone() != (0,)


@pytest.mark.parametrize("path", FORMS)
def test_concurrently_deleted_key_is_not_found(customer: Customer, path: str) -> None:
    def send() -> Any:
        try:
            return customer.post(path, **FORMS[path])
        finally:
            connections.close_all()

    with ThreadPoolExecutor() as pool:
        with transaction.atomic():
            delete_key(api_key=customer.key)
            answer = pool.submit(send)
            wait_until(is_waited_for)
        told = answer.result()
    assert told.status_code in (200, 302, 400)
    page = customer.client.get("/dashboard/") if told.status_code == 302 else told
    assert "This API key was deleted." in text(page)
