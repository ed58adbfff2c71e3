"""The admin's first page: tasks of staff."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.contrib.auth.models import Permission
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from config import front_page
from keys import staff_facts
from keys.models import ApiKey, DailyUse, User
from keys.services import create_key, get_or_create_customer, issue_key, request_access
from keys.services.limits import set_limits, set_plan
from keys.usage.daily import today
from networks.models import Network, NetworkDeletion, NetworkState
from nodeapi.models import FollowerStatus, UpstreamStatus
from tests.support.following import followed_network
from tests.support.rows import make_network
from tests.support.usage import add_usage

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Raise the time limit, so that no section is omitted on a slow machine."""
    monkeypatch.setattr(front_page, "SECTION_MILLISECONDS", 30_000)


@pytest.fixture
def staff(client: Client) -> Client:
    client.force_login(User.objects.create_superuser("staff@example.org"))
    return client


def section(client: Client, name: str) -> str:
    """Return a section of the first page, "" if the page has none."""
    answer = client.get("/admin/")
    assert answer.status_code == 200
    text = re.sub(r"\s+", " ", answer.content.decode())
    found = re.search(rf'<section [^>]*id="{name}">(.*?)</section>', text)
    return found[1] if found else ""


def key_of(email: str = "owner@example.org", name: str = "prod") -> ApiKey:
    owner = get_or_create_customer(email=email)
    return issue_key(owner=owner, name=name).api_key


def use(key: ApiKey, credits: int) -> None:
    DailyUse.objects.create(
        day=today(), api_key=key, calls=7, failed=2, credits=credits
    )


def test_page_without_anything_to_do_says_so(staff: Client) -> None:
    assert "No pending requests." in section(staff, "requests")
    assert "up to date" in section(staff, "troubles")
    assert "No key has spent" in section(staff, "limits")
    assert "No key was used today." in section(staff, "busiest")
    assert "No server errors or timeouts" in section(staff, "errors")
    text = staff.get("/admin/").content.decode()
    assert text.index('id="errors"') < text.index("All tables")


def test_open_requests_lead_to_their_decision(staff: Client) -> None:
    key, network = key_of(), make_network("alpha")
    asked = request_access(
        api_key=key, network=network, tracers=["callTracer"], reason="to\ndebug"
    )
    text = section(staff, "requests")
    assert "Pending requests for tracing (1)" in text
    assert f'href="/admin/keys/accessrequest/{asked.pk}/change/">prod (…' in text
    assert "of owner@example.org" in text
    assert "callTracer" in text
    assert "to debug" in text


def test_networks_that_lag_and_upstreams_that_fail_are_named(staff: Client) -> None:
    network = followed_network("lagging", url="http://node.example/SECRET", best=12)
    followed_network("fine", url="http://other.example", best=10)
    page = f"/admin/networks/network/{network.pk}/status/"
    text = section(staff, "troubles")
    assert f'href="{page}">lagging</a>' in text
    assert "3 blocks behind" in text
    assert "fine" not in text
    FollowerStatus.objects.filter(network=network).update(alarm="it is forged")
    UpstreamStatus.objects.filter(upstream__network=network).update(
        backing_off_until=timezone.now() + timedelta(minutes=1),
        last_error="connection refused\u202e",
    )
    text = section(staff, "troubles")
    assert "New blocks are not imported" in text
    assert "it is forged" in text
    assert "Upstream http://node.example/…: backing off" in text
    assert "connection refused⟨U+202E⟩" in text
    assert "SECRET" not in text
    FollowerStatus.objects.update(updated_at=timezone.now() - timedelta(minutes=1))
    assert section(staff, "troubles").count("The follower is not running") == 2
    Network.objects.update(state=NetworkState.RETIRED)
    assert "up to date" in section(staff, "troubles")


def test_deletion_in_progress_is_shown(staff: Client) -> None:
    network = make_network("gone", state=NetworkState.RETIRED)
    table = {"table": "t", "label": "blocks", "about": 200, "deleted": 50}
    deletion = NetworkDeletion.objects.create(
        network=network, slug="gone", name="Gone", chain_id=1, tables=[table]
    )
    text = section(staff, "troubles")
    page = f"/admin/networks/networkdeletion/{deletion.pk}/change/"
    assert f'href="{page}">gone</a>' in text
    assert "25 %" in text
    shown = staff.get(page).content.decode()
    assert "blocks" in shown
    assert "200" in shown


def test_keys_near_their_quota_and_busiest_keys_are_listed(staff: Client) -> None:
    set_plan(slug="free", name="Free", credits_per_day=1_000, is_default=True)
    big, _ = set_plan(slug="big", name="Big", credits_per_day=1_000_000)
    unlimited, _ = set_plan(slug="all", name="All")
    near, over, far, own, free = (
        key_of(name=name) for name in ("near", "over", "far", "own", "free")
    )
    set_limits(api_key=far, plan=big)
    set_limits(api_key=own, plan=big, credits_per_day=100)
    set_limits(api_key=free, plan=unlimited)
    for key, credits in ((near, 800), (over, 1_500), (far, 9_000), (own, 99)):
        use(key, credits)
    use(free, 99_000)
    use(key_of(name="idle"), 799)
    text = section(staff, "limits")
    assert re.findall(r">(\w+) \(…", text) == ["over", "near", "own"]
    assert "80 % of 1,000" in text
    assert "99 % of 100" in text
    assert 'class="number warned">150 % of 1,000' in text
    assert f'href="/admin/keys/apikey/{near.pk}/change/"' in text
    names = re.findall(r">(\w+) \(…", section(staff, "busiest"))
    assert names == ["free", "far", "over", "near", "idle", "own"]


def test_calls_that_failed_here_are_counted(staff: Client) -> None:
    key, network = key_of(), make_network("alpha")
    hour = timedelta(hours=1)
    for hours, method, outcome, calls in (
        (1, "eth_call", "server_error", 3),
        (2, "eth_call", "server_error", 4),
        (1, "eth_call", "timeout", 1),
        (1, "eth_chainId", "client_error", 900),
        (50, "eth_getLogs", "server_error", 99),
    ):
        add_usage(
            key,
            network,
            timezone.now() - hours * hour,
            method=method,
            outcome=outcome,
            calls=calls,
        )
    text = section(staff, "errors")
    rows = re.findall(
        r'">(\w+)</a>.*?<td data-label="Calls" class="number">([\d,]+)</td>', text
    )
    assert rows == [("eth_call", "7"), ("eth_call", "1")]
    assert f"?outcome__exact=server_error&amp;network__id__exact={network.pk}" in text


@pytest.mark.parametrize(
    ("permission", "names"),
    [
        ("view_accessrequest", {"requests"}),
        ("view_network", {"troubles"}),
        ("view_apikey", {"limits", "busiest"}),
        ("view_usagebucket", {"errors"}),
        ("view_user", set()),
    ],
)
def test_sections_need_permissions(
    client: Client, permission: str, names: set[str]
) -> None:
    user = User.objects.create_user("some@example.org", is_staff=True)
    user.user_permissions.add(Permission.objects.get(codename=permission))
    client.force_login(user)
    text = client.get("/admin/").content.decode()
    found = set(re.findall(r'<section class="module[^"]*" id="(\w+)"', text))
    assert found == names


def test_number_of_queries_depends_on_no_number_of_rows(staff: Client) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as context:
            assert staff.get("/admin/").status_code == 200
        return len(context)

    def add(number: int) -> None:
        key = key_of(f"{number}@example.org")
        network = followed_network(f"net-{number}", url=f"http://{number}.example")
        request_access(api_key=key, network=network, reason="to debug")
        use(key, 900)
        add_usage(key, network, method="eth_call", outcome="timeout", calls=1)

    set_plan(slug="free", name="Free", credits_per_day=1_000, is_default=True)
    add(0)
    queries()  # Django caches content types
    before = queries()
    for number in range(1, 5):
        add(number)
    assert queries() == before


def test_query_that_takes_too_long_leaves_its_section_out(
    staff: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow() -> list[object]:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_sleep(600)")
        return []

    monkeypatch.setattr(staff_facts, "busiest_keys", slow)
    monkeypatch.setattr(front_page, "SECTION_MILLISECONDS", 20)
    assert "could not be read in time" in section(staff, "busiest")
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('statement_timeout')")
        assert cursor.fetchone() == ("0",)
    create_key(owner=get_or_create_customer(email="owner@example.org"))
