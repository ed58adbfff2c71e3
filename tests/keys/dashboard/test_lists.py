"""Allowlists, tracing, requests for it, and the log."""

from __future__ import annotations

import csv
import re
from datetime import UTC, datetime, timedelta
from html import unescape

import pytest
from django.utils import timezone

from keys.dashboard.activity import LINES, plain_cell
from keys.models import (
    AccessRequest,
    AllowlistEntry,
    AllowlistKind,
    Entitlement,
    KeyEvent,
    User,
)
from keys.services import (
    Actor,
    approve_access,
    decline_access,
    grant_entitlement,
    roll_key,
    update_key,
)
from keys.services.limits import set_limits
from tests.keys.dashboard.conftest import Customer, text
from tests.support.rows import make_network


def lines(*entries: str) -> str:
    return "\r\n".join(entries)


def stored(kind: str) -> list[str]:
    entries = AllowlistEntry.objects.filter(kind=kind).order_by("value")
    return list(entries.values_list("value", flat=True))


def test_one_form_saves_all_lists(customer: Customer) -> None:
    form = {
        "typed-origin": lines("HTTPS://Dapp.example", "", "  *.dapp.example "),
        "typed-user_agent": "My app, version 2",
        "typed-ip": "192.0.2.7, 2001:db8::/32",
        "method": ["eth_call", "eth_getLogs"],
        "typed-method": "eth_chainId\neth_call",
        "typed-contract": "0x" + "Ab" * 20,
    }
    answer = customer.client.post(customer.path("allowlists"), form, follow=True)
    page = text(answer)
    assert "Saved. Origins: 2 entries. User agents: 1 entry." in page
    assert "Methods: 3 entries." in page
    assert stored("origin") == ["*.dapp.example", "https://dapp.example"]
    assert stored("user_agent") == ["My app, version 2"]
    assert stored("ip") == ["192.0.2.7/32", "2001:db8::/32"]
    assert stored("method") == ["eth_call", "eth_chainId", "eth_getLogs"]
    assert stored("contract") == ["0x" + "ab" * 20]
    assert "https://dapp.example" in customer.page("allowlists")
    assert page.count(" checked") == 3
    emptied = customer.client.post(customer.path("allowlists"), {}, follow=True)
    assert "Origins: empty, all allowed." in text(emptied)
    assert not AllowlistEntry.objects.exists()


def test_list_that_was_not_changed_is_not_written(customer: Customer) -> None:
    """The list may have been changed in another window since the page was opened."""
    customer.post("allowlists", **{"typed-ip": "192.0.2.1"})
    opened = {f"shown-{kind}": "" for kind in AllowlistKind.values}
    answer = customer.client.post(
        customer.path("allowlists"),
        {**opened, "typed-origin": "a.example"},
        follow=True,
    )
    assert "Saved. Origins: 1 entry. <" in text(answer).replace("</p>", " <")
    assert (stored("ip"), stored("origin")) == (["192.0.2.1/32"], ["a.example"])
    events = KeyEvent.objects.filter(type="allowlist.changed")
    assert sorted(event.data["kind"] for event in events) == ["ip", "origin"]
    same = {**opened, "shown-origin": "a.example", "typed-origin": "a.example"}
    answer = customer.client.post(customer.path("allowlists"), same, follow=True)
    assert "No changes." in text(answer)


@pytest.mark.parametrize(
    ("kind", "entries", "fault"),
    [
        (
            "origin",
            "*",
            "'*' is not an origin. Enter an origin such as https://dapp.example",
        ),
        ("origin", "https://a.example/x", "Did you mean https://a.example?"),
        ("ip", "300.1.1.1", "'300.1.1.1' is not an IP address or network"),
        ("method", "eth", "'eth' is not a method"),
        ("method", "eth_getBlockbyHash", "Did you mean eth_getBlockByHash?"),
        ("contract", "0x12", "0x and 40 hexadecimal digits"),
        ("method", "x" * 201, "1 to 200 characters"),
        (
            "origin",
            lines(*(f"a{n}.example" for n in range(31))),
            "31 entries are too many: a list has at most 30",
        ),
        (
            "origin",
            lines(*(f"a{n}.example" for n in range(301))),
            "301 entries are too many: a list has at most 30",
        ),
    ],
)
def test_wrong_entries_are_named_and_no_input_is_lost(
    customer: Customer, kind: str, entries: str, fault: str
) -> None:
    form = {
        "typed-user_agent": "another list's input",
        "method": ["eth_call"],
        f"typed-{kind}": entries,
    }
    answer = customer.client.post(customer.path("allowlists"), form)
    assert answer.status_code == 400
    page = unescape(answer.content.decode())
    assert "Nothing was saved." in page
    assert fault in page
    assert entries.replace("\r\n", "\n") in page.replace("\r\n", "\n")
    assert "another list's input" in page
    assert re.search(r'value="eth_call" checked', page)
    assert not AllowlistEntry.objects.exists()


def test_methods_are_searched_without_scripts_and_no_input_is_lost(
    customer: Customer,
) -> None:
    assert 'value="eth_getLogs"' in customer.page("allowlists")
    form = {
        "find": "1",
        "search": "block HASH",
        "method": ["eth_call", "eth_gone"],
        "typed-origin": "https://not/saved",
    }
    answer = customer.client.post(customer.path("allowlists"), form)
    assert answer.status_code == 200
    page = text(answer)
    assert 'value="eth_getBlockByHash"' in page
    assert 'value="eth_getLogs"' not in page
    assert "https://not/saved" in page
    assert 'value="block HASH"' in page
    for name in ("eth_call", "eth_gone"):  # stay selected
        assert f'value="{name}" checked' in page
    assert page.count("not served") == 1
    assert not AllowlistEntry.objects.exists()


def test_methods_on_the_list_are_shown_first(customer: Customer) -> None:
    customer.post("allowlists", method=["web3_sha3"])
    page = customer.page("allowlists")
    names = re.findall(r'name="method" value="(\w+)"', page)
    assert names[0] == "web3_sha3"
    assert names[1:] == sorted(names[1:])
    assert len(names) > 60


def test_tracing_names_what_was_granted_on_each_network(
    customer: Customer, alpha
) -> None:
    beta = make_network("beta", tracers=["callTracer"])
    until = timezone.now() + timedelta(days=9)
    grant_entitlement(
        api_key=customer.key, network=alpha, tracers=["callTracer"], expires_at=until
    )
    grant_entitlement(api_key=customer.key, network=beta)
    Entitlement.objects.filter(network=beta).update(
        expires_at=timezone.now() - timedelta(days=1)
    )
    page = customer.page("tracing")
    assert "callTracer<span" in page
    assert f"Granted until {until:%Y-%m-%d %H:%M} UTC" in page
    assert "The grant expired on" in page
    assert page.count(": granted") == 1
    assert page.count(": not granted") == 2


def test_access_is_asked_for_once_and_can_be_withdrawn(
    customer: Customer, alpha
) -> None:
    form = {"tracers": ["callTracer"], "reason": "To look into reverts"}
    assert customer.post("tracing/alpha", **form).status_code == 302
    asked = AccessRequest.objects.get()
    assert (asked.tracers, asked.requested_by) == (["callTracer"], customer.user)
    assert "; pending." in customer.page("tracing")
    again = customer.post("tracing/alpha", **form)
    assert "already has a pending request" in text(again)
    assert AccessRequest.objects.count() == 1
    withdrawal = f"tracing/requests/{asked.pk}/withdraw"
    assert customer.post(withdrawal).status_code == 302
    assert ">withdrawn</span>" in customer.page("tracing")
    twice = customer.client.post(customer.path(withdrawal), follow=True)
    assert "This request has already been decided" in text(twice)
    assert customer.post("tracing/alpha", **form).status_code == 302


@pytest.mark.parametrize(
    "form",
    [
        {"tracers": [], "reason": "x"},
        {"tracers": ["callTracer"], "reason": " "},
        {"tracers": ["javascript"], "reason": "not offered here"},
        {"tracers": ["callTracer"], "reason": "x" * 1001},
    ],
)
def test_wrong_requests_are_refused(customer: Customer, form) -> None:
    answer = customer.post("tracing/alpha", **form)
    assert 'class="errorlist"' in text(answer)
    assert not AccessRequest.objects.exists()


def test_network_that_the_key_does_not_open_is_not_found(
    customer: Customer, alpha
) -> None:
    beta = make_network("beta")
    update_key(api_key=customer.key, networks=[alpha])
    assert customer.client.get(customer.path("tracing/beta")).status_code == 404
    form = {"tracers": ["callTracer"], "reason": "x"}
    assert customer.post("tracing/beta", **form).status_code == 404
    assert beta.name not in customer.page("tracing")


def test_answer_of_staff_is_shown(customer: Customer, alpha) -> None:
    form = {"tracers": ["callTracer"], "reason": "x"}
    customer.post("tracing/alpha", **form)
    decline_access(request=AccessRequest.objects.get(), answer="Tell us more <please>")
    assert "Tell us more &lt;please&gt;" in customer.page("tracing")
    customer.post("tracing/alpha", **form)
    approve_access(request=AccessRequest.objects.get(status="pending"))
    assert "approved" in customer.page("tracing")


def test_log_shows_owners_their_actions_without_names_of_staff(
    customer: Customer,
) -> None:
    staff = User.objects.create_user("secret-name@example.org", is_staff=True)
    boss = Actor(staff, "198.51.100.7")
    update_key(api_key=customer.key, name="Renamed", staff_note="hush", actor=boss)
    customer.client.post(
        customer.path("rename"), {"name": "Mine"}, REMOTE_ADDR="192.0.2.9"
    )
    page = customer.page("activity")
    assert "Renamed → Mine" in page
    assert "192.0.2.9" in page
    assert "support" in page
    for hidden in ("secret-name", "198.51.100.7", "hush", "staff note"):
        assert hidden not in page
    answer = customer.client.get(customer.path("activity.csv"))
    assert answer["Content-Disposition"].startswith("attachment")
    rows = list(csv.DictReader(answer.content.decode().splitlines()))
    assert [row["by"] for row in rows] == [
        "you",
        "support",
        "the service",
        "the service",
    ]
    assert rows[0]["details"] == "name: Renamed → Mine"
    assert "hush" not in answer.content.decode()


def test_log_shows_readable_terms_and_times(customer: Customer, alpha) -> None:
    set_limits(api_key=customer.key, burst=700)
    end = datetime(2031, 2, 3, 4, 5, 6, 789, tzinfo=UTC)
    grant_entitlement(api_key=customer.key, network=alpha, expires_at=end)
    update_key(api_key=customer.key, expires_at=end)
    page = customer.page("activity")
    assert "after <code>burst 700</code>" in page
    assert "expires at <code>2031-02-03 04:05 UTC</code>" in page
    assert "expires at <code>none → 2031-02-03 04:05 UTC</code>" in page
    roll_key(api_key=customer.key, overlap=timedelta(hours=1))
    shown = r"replaced until <code>20\d\d-\d\d-\d\d \d\d:\d\d UTC</code>"
    assert re.search(shown, customer.page("activity"))


def test_long_log_is_shown_in_pages(customer: Customer) -> None:
    KeyEvent.objects.bulk_create(
        KeyEvent(api_key=customer.key, type="key.enabled") for _ in range(60)
    )
    assert customer.page("activity").count("<time") == LINES
    assert customer.page("activity", page="4").count("<time") == 2
    assert customer.page("activity", page="x").count("<time") == LINES


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", "\tx", "\r=x"])
def test_no_cell_is_a_formula(text: str) -> None:
    assert plain_cell(text) == f"'{text}"
    assert plain_cell(f"a{text}") == f"a{text}"
