from __future__ import annotations

import csv
import re
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from keys.models import ApiKey, DailyUse, KeyFailures
from keys.services import get_or_create_customer, issue_key
from keys.usage.daily import today
from networks.models import Network
from tests.support.rows import make_network
from tests.support.usage import add_usage

pytestmark = pytest.mark.django_db


@pytest.fixture
def api_key() -> ApiKey:
    owner = get_or_create_customer(email="owner@example.org")
    return issue_key(owner=owner, name="dapp").api_key


@pytest.fixture
def customer(client: Client, api_key: ApiKey) -> Client:
    client.force_login(api_key.owner)
    return client


@pytest.fixture
def used(api_key: ApiKey) -> ApiKey:
    network = make_network("metered")
    at = timezone.now() - timedelta(minutes=2)
    for method, outcome, calls in (
        ("eth_call", "ok", 30),
        ("eth_getCode", "denied", 10),
    ):
        add_usage(api_key, network, at, method=method, outcome=outcome, calls=calls)
    DailyUse.objects.create(
        day=today(), api_key=api_key, calls=40, failed=10, credits=12_345
    )
    return api_key


def page(api_key: ApiKey, end: str = "usage") -> str:
    return f"/dashboard/keys/{api_key.pk}/{end}"


def text_of(client: Client, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 200
    assert "no-store" in answer["Cache-Control"]
    return answer.content.decode()


def test_a_key_that_was_not_used_says_so(customer: Client, api_key: ApiKey) -> None:
    text = text_of(customer, page(api_key))
    assert "No calls since" in text
    assert '<svg class="canvas"' not in text


@pytest.mark.parametrize("by", ["method", "network", "outcome"])
@pytest.mark.parametrize("range_", ["15m", "1h", "24h", "7d", "30d"])
def test_page_shows_calls_in_every_way(
    customer: Client, used: ApiKey, range_: str, by: str
) -> None:
    text = text_of(customer, f"{page(used)}?range={range_}&by={by}")
    expected = {
        "method": ["eth_call", "eth_getCode"],
        "network": ["metered"],
        "outcome": ["outcome-ok", "outcome-denied"],
    }
    assert all(name in text for name in expected[by])
    assert "25.0%" in text  # ten of forty were denied
    assert "12,345 credits" in text
    assert text.count('<svg class="canvas"') == 2
    assert 'aria-current="page">Usage' in text


def test_what_cannot_be_shown_is_not_there(customer: Client, used: ApiKey) -> None:
    assert customer.get(f"{page(used)}?range=2y").status_code == 404
    assert customer.get(f"{page(used, 'usage.csv')}?by=owner").status_code == 404


def test_csv_is_a_file_of_the_rows(customer: Client, used: ApiKey) -> None:
    answer = customer.get(f"{page(used, 'usage.csv')}?range=1h")
    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    assert f'filename="usage-{used.pk}-1h.csv"' in answer["Content-Disposition"]
    lines = list(csv.DictReader(answer.content.decode().splitlines()))
    assert [(line["method"], line["calls"]) for line in lines] == [
        ("eth_call", "30"),
        ("eth_getCode", "10"),
    ]


@pytest.mark.parametrize("end", ["usage", "usage.csv"])
def test_another_customers_key_is_not_there(
    client: Client, used: ApiKey, end: str
) -> None:
    assert client.get(page(used, end)).status_code == 302
    client.force_login(get_or_create_customer(email="other@example.org"))
    assert client.get(page(used, end)).status_code == 404
    client.force_login(used.owner)
    assert client.get(page(used, end)).status_code == 200
    assert client.post(page(used, end)).status_code == 405


def add_failures(api_key: ApiKey, count: int = 45) -> None:
    now = timezone.now().timestamp()
    KeyFailures.objects.create(
        api_key=api_key,
        latest=[
            [now - number, 0, f"eth_method{number}", -32602, "InvalidParams"]
            for number in range(count)
        ],
        unknown_methods={"eth_getBlockbyHash": [7, now], "<script>x": [1, now]},
    )


def test_failed_requests_and_unknown_methods_are_shown_in_pages(
    customer: Client, used: ApiKey
) -> None:
    assert "No request has failed yet." in text_of(customer, page(used))
    add_failures(used)
    text = text_of(customer, f"{page(used)}?range=1h")
    assert "Did you mean <code>eth_getBlockByHash</code>?" in text
    assert "<script>x" not in text
    assert re.findall(r"eth_method(\d+)", text) == [str(n) for n in range(10)]
    assert 'href="/docs/errors#InvalidParams">invalid params<' in text
    assert "range=1h&amp;by=method&amp;of=calls&amp;failed=2#failed" in text
    last = text_of(customer, f"{page(used)}?range=1h&failed=5")
    assert re.findall(r"eth_method(\d+)", last) == [str(n) for n in range(40, 45)]


def test_calls_of_a_short_time_are_offered_in_a_shorter_range(
    customer: Client, used: ApiKey
) -> None:
    text = text_of(customer, f"{page(used)}?range=7d&by=outcome")
    assert "All of these calls fit into a shorter time span." in text
    link = 'href="?range=15m&amp;by=outcome&amp;of=calls">Show 15 minutes'
    hour = link.replace("15m", "1h").replace("15 minutes", "1 hour")
    day = link.replace("15m", "24h").replace("15 minutes", "24 hours")
    # The time of calls is accurate to a bin of three hours.
    assert any(one in text for one in (link, hour, day))
    assert "shorter time span" not in text_of(customer, f"{page(used)}?range=15m")
    add_usage(used, Network.objects.get(), timezone.now() - timedelta(days=6))
    text = text_of(customer, f"{page(used)}?range=7d")
    assert "shorter time span" not in text
