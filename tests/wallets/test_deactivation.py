"""A deactivated user is disconnected, also if SQL changes the row directly."""

from __future__ import annotations

import pytest
from django.db import connection

from keys.services import switch_customer
from outbox.append import publisher
from outbox.models import Entry
from outbox.streams import ACCOUNT, wallet
from tests.support.wallet import new_user

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_database_trigger_reports_deactivation() -> None:
    """The change bypasses the project's code, as an operator's in psql does."""
    user, other = new_user(), new_user()

    def announced(change: str) -> list[tuple[str, str]]:
        """Return the entries that a change of the user adds."""
        known = Entry.objects.count()
        with connection.cursor() as cursor:
            cursor.execute(f"UPDATE keys_user SET {change} WHERE id = %s", [user.pk])
        found = Entry.objects.order_by("created_at")
        return list(found.values_list("stream", "subject"))[known:]

    everything = [(wallet(user.pk), ACCOUNT)]
    assert announced("is_active = false") == everything
    assert announced("is_active = false") == []  # it was deactivated already
    assert announced("email = 'other@example.org'") == []
    assert announced("is_active = true") == everything
    assert not Entry.objects.filter(stream=wallet(other.pk)).exists()


def test_staff_publish_it_at_once(monkeypatch) -> None:
    user = new_user()
    published: list[dict[str, int]] = []
    monkeypatch.setattr(publisher, "publish", published.append)
    switch_customer(user=user, is_active=False)
    assert published == [{wallet(user.pk): 1}]
    assert list(Entry.objects.values_list("subject", flat=True)) == [ACCOUNT]
