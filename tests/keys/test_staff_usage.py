"""Usage of keys, as the admin shows it to staff."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import Group
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from keys.models import ApiKey, DailyUse, User
from keys.services import get_or_create_customer, issue_key, request_access
from keys.services.limits import set_limits, set_plan
from keys.usage.daily import today
from tests.support.rows import make_network
from tests.support.usage import add_usage

pytestmark = pytest.mark.django_db

API_KEYS = "/admin/keys/apikey/"
INDEX = "/admin/"


@pytest.fixture
def auditor(client: Client) -> Client:
    user = User.objects.create_user("auditor@example.org", is_staff=True)
    user.groups.add(Group.objects.get(name="auditor"))
    client.force_login(user)
    return client


@pytest.fixture
def used() -> ApiKey:
    """Return a key with forty calls today, of which ten failed."""
    network = make_network("metered")
    owner = get_or_create_customer(email="owner@example.org")
    api_key = issue_key(owner=owner, name="dapp", networks=[network]).api_key
    for outcome, calls in (("ok", 30), ("denied", 10)):
        add_usage(api_key, network, outcome=outcome, calls=calls)
    DailyUse.objects.create(
        day=today(), api_key=api_key, calls=40, failed=10, credits=12_345
    )
    return api_key


def text_of(client: Client, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 200
    return answer.content.decode()


def test_keys_page_shows_what_it_was_used_for(auditor: Client, used: ApiKey) -> None:
    text = text_of(auditor, f"{API_KEYS}{used.pk}/change/?range=1h&by=outcome")
    assert text.count('<svg class="canvas"') == 2
    assert "Calls by outcome" in text
    assert "25.0%" in text
    assert "12,345 credits" in text


def test_first_page_sums_up_all_keys(auditor: Client, used: ApiKey) -> None:
    request_access(
        api_key=used,
        network=used.networks.get(),
        tracers=["callTracer"],
        reason="to debug",
    )
    text = text_of(auditor, INDEX)
    assert "Usage of all keys" in text
    assert "10 failed" in text
    assert f'<a href="{API_KEYS}{used.pk}/change/">dapp (…' in text
    assert "owner@example.org" in text
    assert text.count('<svg class="canvas"') == 2
    assert "Calls by network" in text_of(auditor, f"{INDEX}?by=network")


def test_first_page_without_calls_or_with_a_wrong_choice(auditor: Client) -> None:
    assert "No calls since" in text_of(auditor, f"{INDEX}?range=2y")


def test_usage_is_shown_only_to_staff_who_may_see_keys(
    client: Client, used: ApiKey
) -> None:
    client.force_login(User.objects.create_user("new@example.org", is_staff=True))
    assert "Usage of all keys" not in text_of(client, INDEX)


def test_list_has_networks_and_credits_of_today(auditor: Client, used: ApiKey) -> None:
    text = text_of(auditor, API_KEYS)
    assert '<td class="field-opens">metered</td>' in text
    assert '<td class="field-credits_today">12,345</td>' in text


def test_empty_list_says_whether_there_are_rows(auditor: Client, used: ApiKey) -> None:
    found = text_of(auditor, f"{API_KEYS}?q=nothing")
    assert "No API keys match the search and the filters." in found
    assert "There are no limits yet." in text_of(auditor, "/admin/keys/keylimits/")


def test_page_of_a_key_shows_its_state_and_its_limits(
    auditor: Client, used: ApiKey
) -> None:
    page = f"{API_KEYS}{used.pk}/change/"
    assert "no plan: no limits" in text_of(auditor, page)
    plan, _ = set_plan(slug="gold", name="Gold", credits_per_second=5_000)
    set_limits(api_key=used, plan=plan, credits_per_day=70_000)
    terms = (
        "Gold, with custom limits: 5,000 credits per second, burst 10,000, "
        "70,000 credits per day"
    )
    found = text_of(auditor, page)
    assert terms in found
    assert re.search(r"State:.*?active", found, re.DOTALL)


def test_usage_of_all_keys_is_on_no_page_of_an_application(auditor: Client) -> None:
    for application in ("keys", "networks"):
        assert "Usage of all keys" not in text_of(auditor, f"/admin/{application}/")


def test_first_page_takes_as_many_queries_for_many_keys_as_for_few(
    auditor: Client, used: ApiKey
) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as context:
            text_of(auditor, INDEX)
        return len(context)

    queries()  # Django caches content types
    before = queries()
    for number in range(5):
        owner = get_or_create_customer(email=f"{number}@example.org")
        api_key = issue_key(owner=owner).api_key
        DailyUse.objects.create(
            day=today(), api_key=api_key, calls=1, failed=0, credits=1
        )
    assert queries() == before
