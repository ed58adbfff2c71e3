"""Totals of usage, as a billing program reads them."""

from __future__ import annotations

import base64
import csv
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import orjson
import pytest

from keys.models import ApiKey, User
from keys.services import create_key
from keys.usage.daily import today
from networks.models import Network
from tests.keys.api.conftest import Program
from tests.support.usage import add_usage

pytestmark = pytest.mark.django_db

TODAY = datetime.combine(today(), datetime.min.time(), UTC)
YESTERDAY = TODAY - timedelta(days=1)


def between(since: datetime, until: datetime) -> str:
    return f"from={since:%Y-%m-%dT%H:%M:%SZ}&to={until:%Y-%m-%dT%H:%M:%SZ}"


DAY = between(YESTERDAY, TODAY)


@pytest.fixture
def used(api_key: ApiKey, customer: User, alpha: Network) -> list[ApiKey]:
    """Return two keys that were used in two hours, by two methods."""
    keys = [api_key, create_key(owner=customer)]
    for number, key in enumerate(keys):
        for hour in (1, 2):
            for method in ("eth_chainId", "trace_block"):
                add_usage(
                    key,
                    alpha,
                    YESTERDAY + timedelta(hours=hour, minutes=30),
                    method=method,
                    calls=10 + number,
                    credits=100,
                    duration_us=5000,
                    bytes_out=7,
                    latencies=[0, 0, 0, 10 + number],
                )
    return keys


def test_one_sum_of_all(program: Program, used: list[ApiKey]) -> None:
    (total,) = program.result("GET", f"usage?{DAY}")["results"]
    assert (total["calls"], total["credits"], total["bytes_out"]) == (84, 800, 56)
    assert 4 <= total["latency_p50_us"] <= 8
    nothing = program.result(
        "GET", "usage?from=2026-01-01T00:00:00Z&to=2026-01-02T00:00:00Z"
    )
    assert nothing["results"][0]["calls"] == 0
    assert nothing["results"][0]["latency_p95_us"] is None


def test_sums_are_grouped_and_narrowed(program: Program, used: list[ApiKey]) -> None:
    path = f"usage?{DAY}&group_by=key,method&interval=hour&outcome=ok"
    rows = program.result("GET", path)["results"]
    assert len(rows) == 8
    assert rows[0] == {
        **rows[0],
        "start": f"{YESTERDAY:%Y-%m-%d}T01:00:00Z",
        "key": used[0].pk,
        "method": "eth_chainId",
        "calls": 10,
    }
    (own,) = program.result("GET", f"usage?{DAY}&key={used[1].pk}")["results"]
    assert own["calls"] == 44


@pytest.mark.parametrize(
    ("since", "until", "more", "resolution", "calls"),
    [
        (timedelta(0), timedelta(days=1), "", "day", 84),
        (timedelta(0), timedelta(days=1), "&interval=month", "day", 84),
        (timedelta(0), timedelta(days=1), "&interval=hour", "hour", 84),
        (timedelta(0), timedelta(days=1), "&resolution=hour", "hour", 84),
        (timedelta(hours=2), timedelta(hours=3), "", "hour", 42),
        (timedelta(hours=2), timedelta(hours=3), "&interval=day", "hour", 42),
        (timedelta(hours=2), timedelta(days=9), "", "hour", 42),
        (timedelta(hours=2, minutes=30), timedelta(hours=3), "", "minute", 42),
        (timedelta(hours=2, minutes=31), timedelta(hours=3), "", "minute", 0),
        (timedelta(hours=2, seconds=1), timedelta(hours=3), "", "minute", 42),
        (timedelta(hours=1), timedelta(hours=2, seconds=1), "", "minute", 42),
        (timedelta(days=-5, hours=2), timedelta(days=1), "", "hour", 84),
        (timedelta(days=-5, minutes=1), timedelta(days=1), "", "hour", 84),
        (
            timedelta(days=-5, minutes=1),
            timedelta(days=1),
            "&interval=minute",
            "hour",
            84,
        ),
        (
            timedelta(days=-95, minutes=1),
            timedelta(days=1),
            "&interval=hour",
            "day",
            84,
        ),
    ],
)
def test_rows_that_are_added_up_fit_the_question(
    program: Program,
    used: list[ApiKey],
    since: timedelta,
    until: timedelta,
    more: str,
    resolution: str,
    calls: int,
) -> None:
    path = f"usage?{between(YESTERDAY + since, YESTERDAY + until)}{more}"
    answer = program.result("GET", path)
    assert answer["resolution"] == resolution
    assert sum(row["calls"] for row in answer["results"]) == calls


def test_links_to_next_pages_begin_with_the_services_url(
    program: Program, used: list[ApiKey], settings: Any
) -> None:
    settings.PUBLIC_URL = "https://rpc.example"
    for key in used:
        add_usage(key, key.usage.first().network)
    for path in ("usage?group_by=key&page_size=1", "keys?page_size=1"):
        following = program.result("GET", path)["next"]
        assert following.startswith("https://rpc.example/api/v1/"), following
        assert program.result("GET", following.partition("/api/v1/")[2])["results"]


def test_next_page_is_of_the_same_time(program: Program, used: list[ApiKey]) -> None:
    for key in used:
        add_usage(key, key.usage.first().network)
    first = program.result("GET", "usage?group_by=key&page_size=1")
    assert first["resolution"] == "minute"
    query = parse_qs(urlsplit(first["next"]).query)
    since, until = (datetime.fromisoformat(query[name][0]) for name in ("from", "to"))
    assert until - since == timedelta(days=1)
    assert query["resolution"] == ["minute"]


@pytest.mark.parametrize("format", ["json", "csv"])
def test_pages_hold_every_sum_once(
    program: Program, used: list[ApiKey], format: str
) -> None:
    path = f"usage?{DAY}&group_by=customer,network,method,key&interval=hour&page_size=3"
    seen = []
    address: str | None = f"{path}&format={format}"
    while address:
        answer = program.ask("GET", address)
        assert answer.status_code == 200, answer.content
        if format == "csv":
            assert answer["Content-Type"].startswith("text/csv")
            seen += list(csv.DictReader(answer.content.decode().splitlines()))
            link = answer.headers.get("Link")
            address = link.partition(">")[0].removeprefix("<") if link else None
        else:
            seen += answer.json()["results"]
            address = answer.json()["next"]
    groups = {(str(one["start"]), str(one["key"]), one["method"]) for one in seen}
    assert len(seen) == len(groups) == 8
    assert sum(int(one["calls"]) for one in seen) == 84


def cursor(*values: object) -> str:
    """Return the cursor of the page after a group."""
    return base64.urlsafe_b64encode(orjson.dumps(values)).decode()


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("group_by=colour", "group_by"),
        ("group_by=key,key", "group_by"),
        ("interval=week", "interval"),
        ("resolution=month", "resolution"),
        ("interval=hour&resolution=day", "resolution"),
        (
            f"{between(TODAY - timedelta(days=3), TODAY)}&resolution=minute",
            "resolution",
        ),
        (f"{between(TODAY - timedelta(days=91), TODAY)}&resolution=hour", "resolution"),
        ("from=yesterday", "from"),
        ("from=2026-11-20T00:00:00", "from"),
        ("from=2020-01-01T00:00:00Z", "from"),
        ("from=2026-11-20T00:00:00Z&to=2026-11-19T00:00:00Z", "from"),
        ("group_by=key&cursor=AAAA", "cursor"),
        ("group_by=key&cursor=WyJ4Il0=", "cursor"),
        (f"group_by=key&cursor={cursor(2**63)}", "cursor"),
        (f"group_by=method&cursor={cursor(chr(0))}", "cursor"),
        ("key=99999999999999999999", "key"),
        ("key=0000000000000000000099999999999999999999", "key"),
        ("method=%00", "method"),
    ],
)
def test_wrong_questions_are_reported(program: Program, query: str, field: str) -> None:
    told = program.problem("GET", f"usage?{query}")
    assert (told["status"], list(told["errors"])) == (400, [field])
