"""Sums of usage, as billing reads them."""

from __future__ import annotations

import base64
import csv
from datetime import UTC, datetime

import orjson
import pytest

from keys.models import ApiKey, Span, UsageBucket, User
from keys.services import create_key
from networks.models import Network
from tests.keys.api.conftest import Program

pytestmark = pytest.mark.django_db

DAY = "from=2026-11-20T00:00:00Z&to=2026-11-21T00:00:00Z"


@pytest.fixture
def used(api_key: ApiKey, customer: User, alpha: Network) -> list[ApiKey]:
    """Return two keys that were used in two hours, by two methods."""
    keys = [api_key, create_key(owner=customer)]
    for number, key in enumerate(keys):
        for hour in (1, 2):
            for method in ("eth_chainId", "trace_block"):
                UsageBucket.objects.create(
                    api_key=key,
                    network=alpha,
                    method=method,
                    outcome="ok",
                    span=Span.MINUTE if hour == 2 else Span.HOUR,
                    start=datetime(2026, 11, 20, hour, tzinfo=UTC),
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
        "start": "2026-11-20T01:00:00Z",
        "key": used[0].pk,
        "method": "eth_chainId",
        "calls": 10,
    }
    (own,) = program.result("GET", f"usage?{DAY}&key={used[1].pk}")["results"]
    assert own["calls"] == 44


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
    """Return what names a group after which a page begins."""
    return base64.urlsafe_b64encode(orjson.dumps(values)).decode()


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("group_by=colour", "group_by"),
        ("group_by=key,key", "group_by"),
        ("interval=week", "interval"),
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
def test_wrong_questions_are_told_what_is_wrong(
    program: Program, query: str, field: str
) -> None:
    told = program.problem("GET", f"usage?{query}")
    assert (told["status"], list(told["errors"])) == (400, [field])
