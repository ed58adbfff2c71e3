"""The rows that the benchmark inserts, on a small scale, and the pages that it measures."""

from __future__ import annotations

import pytest
from django.test import Client

from bench import admin, admin_rows
from keys.models import ApiKey, DailyUse, KeyEvent, UsageBucket, UsageTotal, User
from keys.states import State, in_state
from tests.support.rows import make_network

pytestmark = pytest.mark.django_db(transaction=True)


def test_all_that_staff_look_for_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admin_rows, "KEYS", 6_000)
    monkeypatch.setattr(admin_rows, "OWNERS", 3_000)
    monkeypatch.setattr(admin_rows, "ROWS", 20_000)
    for number in range(2):
        make_network(f"network-{number}")
    admin_rows.fill(lambda text: None)
    assert UsageBucket.objects.count() > 20_000
    assert ApiKey.objects.count() == 6_000
    for state in State.values:
        assert in_state(ApiKey.objects.all(), state).exists(), state
    assert KeyEvent.objects.count() == 30_000
    assert UsageTotal.objects.exists()
    assert DailyUse.objects.exists()
    staff = User.objects.create_superuser("staff@example.org")
    ApiKey.objects.filter(pk=admin_rows.BUSY).update(owner=staff)
    client = Client()
    client.force_login(staff)
    for name, address in admin.pages().items():
        answer = client.get(address)
        assert answer.status_code == 200, name
        if name.startswith(("keys, search of a", "events, search")):
            assert answer.context["cl"].result_list, name
