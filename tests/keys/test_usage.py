"""Sums over rows of a span, as PostgreSQL adds them up."""

from __future__ import annotations

import csv
from datetime import UTC, datetime, timedelta

import pytest

from keys.dashboard import usage as usage_page
from keys.models import DailyUse, KeyLimits, Plan, Span, UsageBucket, UsageTotal
from keys.services import get_or_create_customer, issue_key
from keys.staff_facts import busiest_keys
from keys.usage import daily
from keys.usage.panel import MAX_SERIES, Chosen, UnknownChoice, panel
from keys.usage.ranges import RANGES
from keys.usage.sums import Dimension, usage
from tests.support.rows import make_network
from tests.support.usage import add_usage

pytestmark = pytest.mark.django_db(transaction=True)

NOW = datetime(2026, 11, 21, 12, 34, 56, tzinfo=UTC)
MINUTE = NOW.replace(second=0)


@pytest.fixture
def network():
    return make_network("metered")


def make_key(email="o@example.org"):
    return issue_key(owner=get_or_create_customer(email=email)).api_key


@pytest.fixture
def api_key():
    return make_key()


def add(api_key, network, age=timedelta(0), **fields):
    """Add a row of two calls, of a key or of all keys together."""
    terms = {
        "network": network,
        "method": "eth_call",
        "outcome": "ok",
        "span": Span.MINUTE,
        "start": MINUTE - age,
        "calls": 2,
        "credits": 40,
        "duration_us": 3000,
        "bytes_out": 100,
        "latencies": [0] * 10 + [1, 1],
    } | fields
    if api_key is None:
        UsageTotal.objects.create(**terms)
    else:
        UsageBucket.objects.create(api_key=api_key, **terms)


def read(name="1h", by=Dimension.METHOD, api_key=None):
    return usage(RANGES[name], NOW, by, api_key)


def test_only_the_rows_of_the_range_and_of_the_key_count(api_key, network):
    add(api_key, network)
    add(api_key, network, timedelta(minutes=59))
    add(api_key, network, timedelta(minutes=60))
    add(make_key("other@example.org"), network)
    found = read(api_key=api_key)
    assert (found.total.calls, found.total.credits, found.total.bytes_out) == (
        4,
        80,
        200,
    )
    assert sorted(place for _, place in found.cells) == [0, 59]


def test_calls_are_distinguished_by_what_is_asked_for(api_key, network):
    other = make_network("second")
    add(api_key, network)
    add(api_key, other, method="eth_getCode", outcome="denied", calls=5)
    by = {each: read(by=each, api_key=api_key).names for each in Dimension}
    assert {name: counts.calls for name, counts in by[Dimension.METHOD].items()} == {
        "eth_call": 2,
        "eth_getCode": 5,
    }
    assert set(by[Dimension.NETWORK]) == {"metered", "second"}
    assert set(by[Dimension.OUTCOME]) == {"ok", "denied"}
    assert by[Dimension.OUTCOME]["denied"].failed == 5


def test_every_range_has_each_call_once(api_key, network):
    step = timedelta(minutes=271)
    times = [NOW - number * step for number in range(-(-timedelta(days=31) // step))]
    for time in times:
        add_usage(api_key, network, time, calls=1)
    for name, chosen in RANGES.items():
        window = chosen.window(NOW)
        expected = sum(time >= window.start for time in times)
        found = read(name, api_key=api_key)
        assert found.total.calls == expected > 0, name
        assert sum(sum(each) for each in found.latencies.values()) == expected, name
        assert read(name).total == found.total, name  # of all keys
        for (_, place), counts in found.cells.items():
            assert 0 <= place < window.count, name
            assert counts.calls <= -(-window.step // step), name


def test_latencies_are_of_calls_that_were_carried_out(api_key, network):
    add(api_key, network, latencies=[0, 0, 0, 0, 4])
    add(api_key, network, outcome="limited", latencies=[90])
    found = read(api_key=api_key)
    assert found.latency(0.5) == 12  # half of the way from 8 to 16 µs
    assert found.latency(0.5, place=59) == 12
    assert found.latency(0.5, place=0) is None


def test_all_keys_together_have_rows_of_their_own(api_key, network):
    add(api_key, network)
    assert read().total.calls == 0
    add(None, network, calls=7)
    assert read().total.calls == 7


def test_a_panel_without_calls_says_so(api_key):
    empty = panel(Chosen(), NOW, api_key)
    assert empty.is_empty
    assert empty.plots == []


def test_a_panel_shows_the_largest_first_and_few_of_them(api_key, network):
    for number in range(MAX_SERIES + 3):
        add(api_key, network, method=f"eth_{number}", calls=number + 1)
    volume, latency = panel(Chosen("1h"), NOW, api_key).plots
    labels = [entry.label for entry in volume.legend]
    assert labels == [*(f"eth_{n}" for n in range(10, 2, -1)), "3 others"]
    assert volume.legend[-1].figure == "6"
    assert [entry.label for entry in latency.legend] == ["p50", "p95"]


def test_a_panel_has_the_share_of_failed_calls(api_key, network):
    add(api_key, network, calls=30)
    add(api_key, network, outcome="timeout", calls=10)
    shown = panel(Chosen("1h", Dimension.OUTCOME, "credits"), NOW, api_key)
    facts = {fact.name: fact.figure for fact in shown.facts}
    assert (facts["Calls"], facts["Credits"], facts["Error rate"]) == (
        "40",
        "80",
        "25.0%",
    )
    assert shown.outcomes == [
        ("success", "30", "75.0%"),
        ("timeout", "10", "25.0%"),
    ]
    assert [shape.css for shape in shown.plots[0].shapes] == [
        "outcome-ok",
        "outcome-timeout",
    ]


@pytest.mark.parametrize("query", [{"range": "2h"}, {"by": "id"}, {"of": "<script>"}])
def test_what_cannot_be_shown_is_refused(query):
    with pytest.raises(UnknownChoice, match="has to be one of"):
        Chosen.from_query(query)


def test_links_change_one_choice():
    chosen = Chosen.from_query({"range": "7d", "by": "network", "else": "x"})
    assert chosen.query(of="credits") == "range=7d&by=network&of=credits"


def test_csv_has_the_rows_of_the_range(api_key, network, monkeypatch):
    add(api_key, network, timedelta(minutes=1))
    add(api_key, network, outcome="denied")
    add(api_key, network, timedelta(hours=2))
    chosen = RANGES["1h"]
    lines = list(
        csv.DictReader(usage_page.usage_csv(api_key, chosen, NOW).splitlines())
    )
    assert [line["start"] for line in lines] == [
        "2026-11-21T12:34:00Z",
        "2026-11-21T12:33:00Z",
    ]
    assert lines[0] == {
        "start": "2026-11-21T12:34:00Z",
        "span_seconds": "60",
        "network": "metered",
        "method": "eth_call",
        "outcome": "denied",
        "calls": "2",
        "credits": "40",
        "duration_ms": "3.000",
        "bytes_out": "100",
    }
    monkeypatch.setattr(usage_page, "MAX_ROWS", 1)
    assert len(usage_page.usage_csv(api_key, chosen, NOW).splitlines()) == 2


@pytest.mark.parametrize(
    ("name", "span", "start"),
    [
        ("15m", "60", "2026-11-21T12:34:00Z"),
        ("1h", "60", "2026-11-21T12:34:00Z"),
        ("24h", "3600", "2026-11-21T12:00:00Z"),
        ("7d", "3600", "2026-11-21T12:00:00Z"),
        ("30d", "86400", "2026-11-21T00:00:00Z"),
    ],
)
def test_csv_has_rows_as_long_as_its_chart(api_key, network, name, span, start):
    add_usage(api_key, network, NOW)
    text = usage_page.usage_csv(api_key, RANGES[name], NOW)
    (line,) = csv.DictReader(text.splitlines())
    assert (line["span_seconds"], line["start"], line["calls"]) == (span, start, "2")


def spend(api_key, credits, calls=1, failed=0, days=0):
    DailyUse.objects.create(
        day=daily.today() - timedelta(days=days),
        api_key=api_key,
        calls=calls,
        failed=failed,
        credits=credits,
    )


@pytest.mark.parametrize(
    ("spent", "left", "is_near", "is_over"),
    [
        (0, 1000, False, False),
        (799, 201, False, False),
        (800, 200, True, False),
        (1000, 0, True, True),
        (1200, 0, True, True),
    ],
)
def test_quota_is_what_the_plan_leaves_of_today(api_key, spent, left, is_near, is_over):
    plan = Plan.objects.create(
        slug="small", credits_per_second=500, burst=1000, credits_per_day=1000
    )
    KeyLimits.objects.create(api_key=api_key, plan=plan)
    spend(api_key, 5000, days=1)
    spend(api_key, spent)
    quota = daily.quota_of(api_key)
    assert (quota.left, quota.is_near, quota.is_over) == (left, is_near, is_over)
    assert quota.shown <= quota.limit
    assert quota.words.startswith(f"{spent:,} of 1,000 credits")


def test_without_a_plan_nothing_ends(api_key):
    spend(api_key, 12_000)
    quota = daily.quota_of(api_key)
    assert (quota.left, quota.is_over) == (None, False)
    assert quota.words == "12,000 credits, no daily quota"


def test_today_is_read_for_several_keys(api_key):
    other = make_key("other@example.org")
    spend(api_key, 10, calls=2, failed=1)
    spend(other, 50, calls=9)
    spend(other, 99, days=1)
    assert [use.api_key for use in busiest_keys()] == [other, api_key]
    assert daily.credits_today([api_key, other]) == {api_key.pk: 10, other.pk: 50}
