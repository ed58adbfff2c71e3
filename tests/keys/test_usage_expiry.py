"""Deletion of old usage rows."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from django.core.management import call_command
from django.db import connection

from keys.models import ApiKey, DailyUse, Span, UsageBucket, UsageTotal
from keys.services import get_or_create_customer, issue_key
from keys.usage import expiry
from networks.models import Network
from tests.support.rows import make_network
from tests.support.usage import add_usage

pytestmark = pytest.mark.django_db(transaction=True)

NOW = datetime(2026, 11, 21, 12, 30, tzinfo=UTC)


@pytest.fixture
def network() -> Network:
    return make_network("metered")


@pytest.fixture
def api_key() -> ApiKey:
    return issue_key(owner=get_or_create_customer(email="o@example.org")).api_key


def add_ages(api_key: ApiKey, network: Network, *ages: timedelta) -> None:
    for age in ages:
        add_usage(api_key, network, NOW - age)


def spans() -> list[list[tuple[int, datetime]]]:
    """Return the rows of keys, and those of all keys together."""
    return [
        sorted(model.objects.values_list("span", "start"))
        for model in (UsageBucket, UsageTotal)
    ]


def test_minutes_go_before_hours_and_days_stay(
    api_key: ApiKey, network: Network
) -> None:
    add_ages(
        api_key,
        network,
        timedelta(hours=48),
        timedelta(hours=48, minutes=1),
        timedelta(days=91),
        timedelta(days=3000),
    )
    assert expiry.expire(NOW) == 2 * (1 + 2 + 2)
    kept = [
        (Span.MINUTE, NOW - timedelta(hours=48)),
        (Span.HOUR, datetime(2026, 11, 19, 12, tzinfo=UTC)),
        (Span.DAY, datetime(2018, 9, 4, tzinfo=UTC)),
        (Span.DAY, datetime(2026, 8, 22, tzinfo=UTC)),
        (Span.DAY, datetime(2026, 11, 19, tzinfo=UTC)),
    ]
    assert spans() == [kept, kept]


def test_twice_at_once_removes_everything_once(
    api_key: ApiKey, network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expiry, "BATCH_ROWS", 3)
    add_ages(
        api_key, network, *(timedelta(days=3, minutes=number) for number in range(60))
    )

    def expire() -> int:
        try:
            return expiry.expire(NOW)
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        removed = [pool.submit(expire) for _ in range(2)]
        assert sum(one.result() for one in removed) == 120
    assert expiry.expire(NOW) == 0
    assert not UsageBucket.objects.filter(span=Span.MINUTE).exists()
    assert UsageBucket.objects.filter(span=Span.HOUR).exists()


def test_days_of_keys_are_kept_as_long_as_anybody_asks_for_them(
    api_key: ApiKey,
) -> None:
    for days in (90, 91):
        day = (NOW - timedelta(days=days)).date()
        DailyUse.objects.create(day=day, api_key=api_key, calls=1, failed=0, credits=1)
    assert expiry.expire(NOW) == 1
    assert DailyUse.objects.get().day == (NOW - timedelta(days=90)).date()


def test_command_says_what_it_did(
    api_key: ApiKey, network: Network, capsys: pytest.CaptureFixture[str]
) -> None:
    add_ages(api_key, network, timedelta(days=300))
    call_command("rollup_usage")
    assert capsys.readouterr().out.strip() == "Deleted 4 rows."
