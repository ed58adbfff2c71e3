from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.core.management import call_command
from django.db.models import Sum

from keys import rollup
from keys.models import DailyUse, UsageBucket, UsageTotal
from keys.services import get_or_create_customer, issue_key
from tests.support.rows import make_network

pytestmark = pytest.mark.django_db(transaction=True)

NOW = datetime(2026, 11, 21, 12, 30, tzinfo=UTC)


@pytest.fixture
def add():
    """Return what adds buckets of one key, each of two calls."""
    network = make_network("metered")
    api_key = issue_key(owner=get_or_create_customer(email="o@example.org")).api_key

    def add(age: timedelta, span: int = 60, method: str = "eth_chainId") -> None:
        UsageBucket.objects.create(
            api_key=api_key,
            network=network,
            method=method,
            outcome="ok",
            span=span,
            start=NOW - age,
            calls=2,
            credits=4,
            duration_us=30,
            bytes_out=100,
            latencies=[0, 1, 1] if method == "eth_chainId" else [0, 0, 0, 2],
        )

    return add


def rows():
    return list(
        UsageBucket.objects.order_by("start", "method").values_list(
            "span", "start", "calls", "latencies"
        )
    )


def test_old_minutes_become_hours(add):
    for minutes in range(30):
        add(timedelta(days=3, minutes=minutes))
    add(timedelta(days=3), method="net_version")
    add(timedelta(hours=5))
    assert rollup.roll_up(NOW) == 31
    hour = NOW.replace(day=18, minute=0)
    assert rows() == [
        (3600, hour, 60, [0, 30, 30]),
        (3600, hour, 2, [0, 0, 0, 2]),
        (60, NOW - timedelta(hours=5), 2, [0, 1, 1]),
    ]


def test_old_hours_become_days_and_minutes_of_old_do_so_at_once(add):
    add(timedelta(days=100), span=3600)
    add(timedelta(days=100, hours=1), span=3600)
    add(timedelta(days=100, hours=2), span=60)
    rollup.roll_up(NOW)
    day = NOW.replace(hour=0, minute=0) - timedelta(days=100)
    assert rows() == [(86_400, day, 6, [0, 3, 3])]


def test_rolling_up_twice_changes_nothing_and_nothing_is_lost(add, monkeypatch):
    monkeypatch.setattr(rollup, "BATCH_ROWS", 7)
    for minutes in range(0, 300, 7):
        add(timedelta(days=5, minutes=minutes))
        add(timedelta(days=95, minutes=minutes), method="net_version")
    sums = ("calls", "credits", "duration_us", "bytes_out")
    before = UsageBucket.objects.aggregate(*map(Sum, sums))
    assert rollup.roll_up(NOW) > 0
    after = rows()
    assert rollup.roll_up(NOW) == 0
    assert rows() == after
    assert UsageBucket.objects.aggregate(*map(Sum, sums)) == before
    assert sum(sum(latencies) for _, _, _, latencies in after) == before["calls__sum"]


def test_usage_of_all_keys_together_is_rolled_up_likewise(add):
    add(timedelta(days=3))
    add(timedelta(days=3, minutes=1))
    columns = [f.attname for f in UsageTotal._meta.fields if f.attname != "id"]
    for row in UsageBucket.objects.values(*columns):
        UsageTotal.objects.create(**row)
    assert rollup.roll_up(NOW) == 4
    assert UsageTotal.objects.get().latencies == UsageBucket.objects.get().latencies
    assert UsageTotal.objects.get().span == 3600


def test_days_of_keys_are_kept_as_long_as_anybody_asks_for_them(add):
    add(timedelta(0))
    api_key = UsageBucket.objects.get().api_key
    for days in (90, 91):
        day = (NOW - timedelta(days=days)).date()
        DailyUse.objects.create(day=day, api_key=api_key, calls=1, failed=0, credits=1)
    rollup.roll_up(NOW)
    assert DailyUse.objects.get().day == (NOW - timedelta(days=90)).date()


def test_command_says_what_it_did(add, capsys):
    add(timedelta(days=300))
    call_command("rollup_usage")
    assert capsys.readouterr().out.strip() == "2 rows merged."
