"""Allowlists, tracing, requests for it, and the log."""

from __future__ import annotations

import csv
from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from keys.dashboard.activity import plain_cell
from keys.models import AccessRequest, AllowlistEntry, Entitlement, KeyEvent, User
from keys.services import (
    Actor,
    approve_access,
    decline_access,
    grant_entitlement,
    update_key,
)
from keys.services.limits import set_limits
from tests.keys.dashboard.conftest import Customer, text
from tests.support.rows import make_network


def lines(*entries: str) -> str:
    return "\r\n".join(entries)


def test_allowlist_is_written_as_it_is_typed(customer: Customer) -> None:
    typed = lines("HTTPS://Dapp.example", "", "  *.dapp.example ", "localhost:*")
    answer = customer.client.post(
        customer.path("allowlists"), {"kind": "origin", "entries": typed}, follow=True
    )
    assert "Origins: 3 of 30 entries." in text(answer)
    values = AllowlistEntry.objects.values_list("value", flat=True)
    assert set(values) == {"https://dapp.example", "*.dapp.example", "localhost:*"}
    assert "https://dapp.example" in customer.page("allowlists")
    customer.post("allowlists", kind="origin", entries="")
    assert not AllowlistEntry.objects.exists()


@pytest.mark.parametrize(
    ("kind", "entries", "fault"),
    [
        ("origin", "*", "&#x27;*&#x27; is no origin"),
        ("ip", "300.1.1.1", "&#x27;300.1.1.1&#x27; is no address or network"),
        ("method", "eth getBlock", "is no method"),
        ("contract", "0x12", "0x and 40 hexadecimal digits"),
        ("method", "x" * 201, "1 to 200 characters"),
        (
            "method",
            lines(*(f"eth_m{n}" for n in range(31))),
            "31 entries are too many: a list holds 30",
        ),
    ],
)
def test_wrong_entries_are_named_and_kept_in_the_field(
    customer: Customer, kind: str, entries: str, fault: str
) -> None:
    answer = customer.post("allowlists", kind=kind, entries=entries)
    assert answer.status_code == 400
    page = text(answer)
    assert fault in page
    assert entries.split("\r\n")[0].replace("'", "&#x27;") in page
    assert not AllowlistEntry.objects.exists()


def test_unknown_kind_of_list_is_not_found(customer: Customer) -> None:
    assert customer.post("allowlists", kind="x", entries="").status_code == 404
    assert customer.post("allowlists").status_code == 404


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
    assert "The grant ended on" in page
    assert page.count(": granted") == 1
    assert page.count(": not granted") == 2


def test_access_is_asked_for_once_and_can_be_withdrawn(
    customer: Customer, alpha
) -> None:
    form = {"tracers": ["callTracer"], "reason": "To look into reverts"}
    assert customer.post("tracing/alpha", **form).status_code == 302
    asked = AccessRequest.objects.get()
    assert (asked.tracers, asked.requested_by) == (["callTracer"], customer.user)
    assert "not decided yet" in customer.page("tracing")
    again = customer.post("tracing/alpha", **form)
    assert "asked for already" in text(again)
    assert AccessRequest.objects.count() == 1
    withdrawal = f"tracing/requests/{asked.pk}/withdraw"
    assert customer.post(withdrawal).status_code == 302
    assert "withdrawn by the customer" in customer.page("tracing")
    twice = customer.client.post(customer.path(withdrawal), follow=True)
    assert "This request is decided" in text(twice)
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


def test_long_log_is_shown_in_pages(customer: Customer) -> None:
    KeyEvent.objects.bulk_create(
        KeyEvent(api_key=customer.key, type="key.enabled") for _ in range(60)
    )
    assert customer.page("activity").count("<time") == 50
    assert customer.page("activity", page="2").count("<time") == 12
    assert customer.page("activity", page="x").count("<time") == 50


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", "\tx", "\r=x"])
def test_no_cell_is_a_formula(text: str) -> None:
    assert plain_cell(text) == f"'{text}"
    assert plain_cell(f"a{text}") == f"a{text}"
