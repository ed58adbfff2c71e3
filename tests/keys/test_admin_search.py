"""What staff find in the admin, and how lists of very many rows are paged."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from keys import limits_admin, read_only_admin
from keys.models import ApiKey, Span, UsageBucket, User
from keys.services import create_key, get_or_create_customer, issue_key
from networks.models import Network
from tests.support.rows import make_network

pytestmark = pytest.mark.django_db


@pytest.fixture
def staff(client: Client) -> Client:
    client.force_login(User.objects.create_superuser("staff@example.org"))
    return client


def found(staff: Client, model: str, **query: Any) -> list[int]:
    """Return the ids that a list shows, sorted."""
    answer = staff.get(f"/admin/keys/{model}/", query)
    assert answer.status_code == 200
    return sorted(row.pk for row in answer.context["cl"].result_list)


def add_usage(api_key: ApiKey, network: Network, minutes: int = 0) -> int:
    start = timezone.now().replace(second=0, microsecond=0)
    bucket = UsageBucket.objects.create(
        api_key=api_key,
        network=network,
        method="eth_call",
        outcome="ok",
        span=Span.MINUTE,
        start=start - timedelta(minutes=minutes),
        **dict.fromkeys(("calls", "credits", "duration_us", "bytes_out"), 1),
        latencies=[1],
    )
    return bucket.pk


@pytest.fixture
def two() -> tuple[ApiKey, ApiKey]:
    """Return keys of ada@ and of bob@, each with a secret."""
    first, second = (
        issue_key(owner=get_or_create_customer(email=email), name=name).api_key
        for email, name in (
            ("ada@example.org", "Indexer of 2026"),
            ("bob@example.org", "backend"),
        )
    )
    return first, second


def test_keys_are_found_by_owner_name_and_hint(
    staff: Client, two: tuple[ApiKey, ApiKey]
) -> None:
    first, second = two
    hint = first.versions.get().hint
    for text in ("ada@", "ADA@example.org", "indexer of", " 2026 ", hint):
        assert found(staff, "apikey", q=text) == [first.pk], text
    assert found(staff, "apikey", q=hint.replace("…", "...")) == [first.pk]
    assert found(staff, "apikey", q="e") == sorted([first.pk, second.pk])
    assert found(staff, "apikey", q="example.org") == []


@pytest.mark.parametrize("model", ["keyevent", "usagebucket", "keylimits"])
def test_what_belongs_to_a_key_is_found_by_number_and_owner(
    staff: Client, two: tuple[ApiKey, ApiKey], model: str
) -> None:
    network = make_network()
    for key in two:
        add_usage(key, network)
    everything = found(staff, model)
    mine = found(staff, model, q=two[0].pk)
    assert set(mine) <= set(everything)
    assert found(staff, model, q=" Ada@example.org") == mine
    assert found(staff, model, q="ada@") == found(staff, model, q="9" * 30) == []
    if model != "keylimits":
        assert mine
        assert len(mine) < len(everything)


def test_events_are_found_by_actor(staff: Client) -> None:
    person = User.objects.get(email="staff@example.org")
    owner = get_or_create_customer(email="ada@example.org")
    staff.post(
        "/admin/keys/apikey/add/",
        {
            **{"owner": owner.pk, "name": "by staff", "is_enabled": "on"},
            **{
                f"{prefix}-{name}": 0
                for prefix in ("entitlements", "versions", "allowlist")
                for name in ("TOTAL_FORMS", "INITIAL_FORMS")
            },
        },
    )
    made = ApiKey.objects.get()
    events = sorted(made.events.filter(actor=person).values_list("pk", flat=True))
    assert events
    assert found(staff, "keyevent", q=person.email) == events


def test_list_counts_no_further_than_it_must(
    staff: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read_only_admin, "MAX_COUNTED", 3)
    owner = get_or_create_customer(email="ada@example.org")
    for _ in range(5):
        create_key(owner=owner)
    answer = staff.get("/admin/keys/apikey/")
    assert answer.context["cl"].result_count == 3


def test_only_the_latest_usage_is_looked_through_unless_a_key_is_named(
    staff: Client, two: tuple[ApiKey, ApiKey], monkeypatch: pytest.MonkeyPatch
) -> None:
    network = make_network()
    first, second = (add_usage(two[0], network, minutes) for minutes in (1, 2))
    monkeypatch.setattr(limits_admin, "LATEST", 1)
    assert found(staff, "usagebucket") == [second]
    assert found(staff, "usagebucket", q=two[0].pk) == [first, second]
