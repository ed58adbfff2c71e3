from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest

from jsonrpc.errors import (
    InternalError,
    InvalidParams,
    RequestTimedOut,
    ServiceUnavailable,
)
from keys.errors import NetworkNotEnabled
from keys.limiter.errors import DailyQuotaExceeded, RateLimited
from keys.metering import meter as metering
from keys.metering.meter import Meter, outcome_of
from keys.models import DailyUse, KeyVersionUse, Span, UsageBucket, UsageTotal
from keys.services import get_or_create_customer, issue_key
from nodeapi.node import database_conninfo
from tests.support.rows import make_network

pytestmark = pytest.mark.django_db(transaction=True)

NOWHERE = "host=/nonexistent dbname=nothing"

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


class Clock:
    def __init__(self):
        self.now = NOON.timestamp() + 5

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def network():
    return make_network("metered")


@pytest.fixture
def issued():
    return issue_key(owner=get_or_create_customer(email="o@example.org"))


def metered(clock, scenario, conninfo=None):
    """Run a scenario with a meter on the test's database."""

    async def run():
        meter = Meter(conninfo or database_conninfo(), wall_clock=clock)
        await scenario(meter)

    asyncio.run(run())


def use(meter, issued, network_id, *, microseconds=100, outcome=metering.OK, n=1):
    for _ in range(n):
        meter.book(
            (issued.version.pk, issued.api_key.pk, network_id, "eth_chainId", outcome),
            2,
            microseconds,
            50,
        )


def totals(span=Span.MINUTE):
    rows = UsageBucket.objects.filter(span=span)
    return list(
        rows.order_by("start", "outcome").values_list(
            "start", "outcome", "calls", "credits", "duration_us", "bytes_out"
        )
    )


def test_calls_are_added_up_by_minute(clock, network, issued):
    async def scenario(meter):
        use(meter, issued, network.id, n=3)
        use(meter, issued, network.id, outcome=metering.DENIED)
        await meter.flush()
        clock.now += 50
        use(meter, issued, network.id, microseconds=3)
        await meter.flush()
        clock.now += 5  # calls before the end of a minute count for that minute
        use(meter, issued, network.id, microseconds=3)
        await meter.flush()
        clock.now += 5
        use(meter, issued, network.id)
        await meter.flush()
        await meter.flush()

    metered(clock, scenario)
    next_minute = NOON.replace(minute=1)
    assert totals() == [
        (NOON, "denied", 1, 2, 100, 50),
        (NOON, "ok", 5, 10, 306, 250),
        (next_minute, "ok", 1, 2, 100, 50),
    ]
    row = UsageBucket.objects.get(span=Span.MINUTE, start=NOON, outcome="ok")
    assert row.latencies == [0, 0, 2, 0, 0, 0, 0, 3]
    assert totals(Span.HOUR) == [
        (NOON, "denied", 1, 2, 100, 50),
        (NOON, "ok", 6, 12, 406, 300),
    ]
    assert totals(Span.DAY) == [
        (NOON.replace(hour=0), *counts) for _, *counts in totals(Span.HOUR)
    ]
    row = UsageBucket.objects.get(span=Span.DAY, outcome="ok")
    assert row.latencies == [0, 0, 2, 0, 0, 0, 0, 4]


def test_what_all_keys_do_together_and_each_in_a_day_is_known_at_once(
    clock, network, issued
):
    other = issue_key(owner=issued.api_key.owner)

    async def scenario(meter):
        for _ in range(2):
            use(meter, issued, network.id, n=3)
            use(meter, other, network.id, outcome=metering.LIMITED, n=2)
            use(meter, other, network.id, microseconds=3)
            await meter.flush()
        clock.now += 86_400
        use(meter, other, network.id)
        await meter.flush()

    metered(clock, scenario)
    together = UsageTotal.objects.filter(start=NOON).order_by("span", "outcome")
    assert list(
        together.values_list("span", "outcome", "calls", "credits", "bytes_out")
    ) == [
        (span, *counts)
        for span in (Span.MINUTE, Span.HOUR)
        for counts in (("limited", 4, 8, 200), ("ok", 8, 16, 400))
    ]
    assert together[1].latencies == [0, 0, 2, 0, 0, 0, 0, 6]
    days = DailyUse.objects.order_by("day", "api_key")
    assert list(days.values_list("day__day", "api_key", "calls", "failed")) == [
        (21, issued.api_key.pk, 6, 0),
        (21, other.api_key.pk, 6, 4),
        (22, other.api_key.pk, 1, 0),
    ]
    assert sum(day.credits for day in days) == 26


def test_secret_is_known_to_have_been_used(clock, network, issued):
    async def scenario(meter):
        use(meter, issued, network.id)
        await meter.flush()
        clock.now -= 3600  # the clock of another process is behind, but the stored time must not decrease
        use(meter, issued, network.id)
        await meter.flush()

    metered(clock, scenario)
    used = KeyVersionUse.objects.get(version=issued.version)
    assert used.last_used_at.timestamp() == NOON.timestamp() + 5
    assert used.last_network == network


def test_network_of_the_last_use_is_known(clock, network, issued):
    other = make_network("other")

    async def scenario(meter):
        for seconds, place in ((0, network), (60, other), (-30, network)):
            clock.now += seconds
            use(meter, issued, place.id)
            await meter.flush()

    metered(clock, scenario)
    assert KeyVersionUse.objects.get().last_network == other


def test_usage_of_deleted_rows_does_not_prevent_other_writes(clock, network, issued):
    async def scenario(meter):
        use(meter, issued, network.id + 1)  # no such network
        use(meter, issued, network.id)
        await meter.flush()

    metered(clock, scenario)
    assert [row[2] for row in totals()] == [1]


def test_nothing_is_lost_while_the_database_is_away(
    clock, network, issued, monkeypatch
):
    async def outage(meter):
        monkeypatch.setattr(metering, "MAX_WAITING", 2)
        use(meter, issued, network.id, n=2)
        await meter.flush()
        use(meter, issued, network.id, n=3)
        use(meter, issued, network.id, outcome=metering.TIMEOUT)
        await meter.flush()
        use(meter, issued, network.id, outcome=metering.DENIED, n=4)
        await meter.flush()
        assert meter.dropped == 4
        meter.conninfo = database_conninfo()
        await meter.flush()
        assert not meter.waiting

    metered(clock, outage, NOWHERE)
    assert [(row[1], row[2]) for row in totals()] == [("ok", 5), ("timeout", 1)]


def test_minutes_that_waited_together_are_written_one_by_one(clock, network, issued):
    """There are more than a batch of rows, on both sides of midnight."""

    async def scenario(meter):
        clock.now = NOON.timestamp() + 11.5 * 3600
        for _ in range(50):
            use(meter, issued, network.id)
            await meter.flush()
            clock.now += 60
        meter.conninfo = database_conninfo()
        await meter.flush()

    metered(clock, scenario, NOWHERE)
    assert [row[2] for row in totals()] == [1] * 50
    assert [(row[0].hour, row[2]) for row in totals(Span.HOUR)] == [(23, 31), (0, 19)]
    assert [(row[0].day, row[2]) for row in totals(Span.DAY)] == [(21, 31), (22, 19)]


def test_many_rows_are_written_in_portions(clock, network, issued, monkeypatch):
    monkeypatch.setattr(metering, "BATCH_ROWS", 3)

    async def scenario(meter):
        for number in range(8):
            meter.book(
                (issued.version.pk, issued.api_key.pk, network.id, f"m{number}", "ok"),
                1,
                1,
                1,
            )
        await meter.flush()

    metered(clock, scenario)
    assert UsageBucket.objects.count() == 3 * 8


def test_stopping_writes_what_was_counted(clock, network, issued):
    async def scenario(meter):
        await meter.start()
        use(meter, issued, network.id)
        await meter.stop()

    metered(clock, scenario)
    assert [row[2] for row in totals()] == [1]


def test_meters_of_two_processes_add_up(clock, network, issued):
    async def scenario(meter):
        other = Meter(database_conninfo(), wall_clock=clock)
        for each in (meter, other):
            use(each, issued, network.id, n=10)
        await asyncio.gather(meter.flush(), other.flush())

    metered(clock, scenario)
    assert [row[2] for row in totals()] == [20]


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (InvalidParams(), "client_error"),
        (NetworkNotEnabled("x"), "denied"),
        (RateLimited(1, 1), "limited"),
        (DailyQuotaExceeded(1, 1), "limited"),
        (InternalError(), "server_error"),
        (ServiceUnavailable(), "server_error"),
        (RequestTimedOut(), "timeout"),
    ],
)
def test_errors_are_outcomes(error, outcome):
    assert outcome_of(error) == outcome
