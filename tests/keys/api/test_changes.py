"""Changes by programs go through services, which record owner and token."""

from __future__ import annotations

from datetime import timedelta
from threading import Event
from typing import Any

import pytest
from django.core import mail
from django.db import transaction
from django.utils import timezone

from keys import format as key_format
from keys.models import (
    AccessStatus,
    ApiKey,
    Entitlement,
    EventType,
    KeyEvent,
    KeyVersion,
    KeyVersionUse,
    Plan,
    RepeatedRequest,
    User,
)
from keys.notices.queue import send_waiting
from keys.services import (
    create_key,
    get_or_create_customer,
    request_access,
    update_key,
)
from keys.services.events import SYSTEM, lock, record
from networks.models import Network
from tests.keys.api.conftest import Program
from tests.support.rows import make_network
from tests.support.threads import at_once
from tests.support.waiting import PATIENCE_SECONDS, wait_until

pytestmark = pytest.mark.django_db

SOON = "2999-01-01T00:00:00Z"


def settle() -> None:
    """Wait until no transaction that writes key events is in progress."""
    events = KeyEvent.objects.order_by("id")
    wait_until(lambda: list(events.settled()) == list(events))


def last_event(api_key: int) -> KeyEvent:
    return KeyEvent.objects.filter(api_key_id=api_key).latest("id")


def test_customer_is_made_once_and_switched_off(program: Program) -> None:
    answer = program.ask("POST", "customers", {"email": "New@Example.org"})
    assert answer.status_code == 201
    made = answer.json()
    assert made["email"] == "new@example.org"
    again = program.ask("POST", "customers", {"email": "new@example.org"})
    assert (again.status_code, again.json()) == (200, made)
    key = create_key(owner=User.objects.get(pk=made["id"]))
    off = program.result("PATCH", f"customers/{made['id']}", {"is_active": False})
    assert off["is_active"] is False
    assert last_event(key.pk).type == EventType.OWNER_DISABLED
    assert program.result("GET", "customers?is_active=false")["results"] == [off]
    assert program.result("GET", "customers?email=NEW@example.org")["results"] == [off]
    keys = program.result("GET", "keys?customer_email=New@example.org")["results"]
    assert [one["id"] for one in keys] == [key.pk]


def test_staff_are_no_customers(program: Program, staff: User) -> None:
    told = program.problem("PATCH", f"customers/{staff.pk}", {"is_active": False})
    assert told["status"] == 404
    assert program.problem("POST", "customers", {"email": staff.email})["status"] == 409
    told = program.problem("POST", "keys", {"customer": staff.pk})
    assert "customer" in told["errors"]
    staff.refresh_from_db()
    assert staff.is_active


def test_key_is_issued_and_its_secret_shown_once(
    program: Program, customer: User, alpha: Network, staff: User
) -> None:
    wanted = {
        "customer": customer.pk,
        "name": "shop",
        "networks": ["alpha"],
        "expires_at": SOON,
        "with_secret": True,
    }
    answer = program.ask("POST", "keys", wanted)
    assert (answer.status_code, answer["Cache-Control"]) == (201, "no-store")
    made = answer.json()
    assert key_format.is_well_formed(made["secret"])
    assert (made["networks"], made["state"]) == (["alpha"], "active")
    assert made["hints"] == [key_format.hint(made["secret"])]
    event = last_event(made["id"])
    assert event.actor == staff
    assert event.token is not None
    assert event.token.name == "billing"
    shown = program.ask("GET", f"keys/{made['id']}")
    assert made["secret"] not in shown.content.decode()


def test_key_without_secret_is_left_to_its_customer(
    program: Program, customer: User
) -> None:
    made = program.result("POST", "keys", {"customer": customer.pk})
    assert (made["secret"], made["state"]) == (None, "unrevealed")


def test_key_is_changed_disabled_enabled_and_deleted(
    program: Program, api_key: ApiKey, alpha: Network
) -> None:
    path = f"keys/{api_key.pk}"
    changed = program.result("PATCH", path, {"name": "new", "networks": ["alpha"]})
    assert (changed["name"], changed["networks"]) == ("new", ["alpha"])
    disabled = program.result("POST", f"{path}/disable", {"reason": "unpaid"})
    assert (disabled["state"], disabled["is_enabled"]) == ("disabled", False)
    assert last_event(api_key.pk).data == {"reason": "unpaid"}
    assert program.result("POST", f"{path}/enable", {})["is_enabled"] is True
    program.result("DELETE", path)
    assert program.result("GET", path)["state"] == "deleted"
    assert program.problem("PATCH", path, {"name": "x"})["status"] == 409
    assert program.result("GET", "keys")["results"] == []


def test_secrets_are_added_rolled_and_revoked(
    program: Program, api_key: ApiKey, alpha: Network
) -> None:
    path = f"keys/{api_key.pk}"
    first = program.result("POST", f"{path}/versions", {"expires_at": SOON})
    second = program.result("POST", f"{path}/roll", {"overlap_seconds": 3600})
    old = KeyVersion.objects.get(pk=first["id"])
    assert old.expires_at is not None
    assert old.expires_at < timezone.now() + timedelta(hours=1, minutes=1)
    revoked = f"{path}/versions/{second['id']}/revoke"
    assert program.result("POST", revoked, {"reason": "lost"})["revoked_at"]
    assert program.problem("POST", revoked, {"reason": "lost"})["status"] == 409
    KeyVersionUse.objects.create(
        version=old, last_used_at=timezone.now(), last_network=alpha
    )
    shown = program.result("GET", f"{path}/versions")["results"]
    assert [one["id"] for one in shown] == [second["id"], first["id"]]
    assert [one["last_network"] for one in shown] == [None, "alpha"]
    assert "secret" not in shown[0]


def test_version_is_found_below_its_own_key_alone(
    program: Program, api_key: ApiKey, customer: User
) -> None:
    other = create_key(owner=customer)
    made = program.result("POST", f"keys/{other.pk}/versions", {})
    path = f"keys/{api_key.pk}/versions/{made['id']}/revoke"
    assert program.problem("POST", path, {"reason": "x"})["status"] == 404
    assert KeyVersion.objects.get(pk=made["id"]).revoked_at is None


def test_tracing_is_granted_and_withdrawn(
    program: Program, api_key: ApiKey, alpha: Network
) -> None:
    path = f"keys/{api_key.pk}/entitlements"
    terms = {"tracers": ["callTracer"], "expires_at": SOON, "note": "contract 7"}
    granted = program.result("PUT", f"{path}/alpha", terms)
    assert granted["granted_by"] == "staff@example.org"
    assert program.result("GET", path)["results"] == [granted]
    program.result("DELETE", f"{path}/alpha")
    assert program.problem("DELETE", f"{path}/alpha")["status"] == 404
    assert not Entitlement.objects.exists()
    beta = make_network("beta")
    api_key.networks.set([beta])
    assert program.problem("PUT", f"{path}/alpha", {})["status"] == 409


def test_allowlist_is_replaced(program: Program, api_key: ApiKey) -> None:
    path = f"keys/{api_key.pk}/allowlists"
    lists = program.result("PUT", f"{path}/origin", {"values": ["dapp.example"]})
    assert lists["origin"] == ["dapp.example"]
    assert program.result("GET", path) == lists
    told = program.problem("PUT", f"{path}/ip", {"values": ["nowhere"]})
    assert told["status"] == 400
    assert "nowhere" in str(told["errors"])
    many = {"values": [f"a{number}.example" for number in range(31)]}
    assert program.problem("PUT", f"{path}/origin", many)["status"] == 400
    assert program.problem("PUT", f"{path}/colour", {"values": []})["status"] == 404


def test_limits_come_of_the_plan_and_of_own_terms(
    program: Program, api_key: ApiKey
) -> None:
    terms = {"name": "Gold", "credits_per_second": 900, "credits_per_day": 10**6}
    assert program.ask("PUT", "plans/gold", terms).status_code == 201
    assert program.ask("PUT", "plans/gold", terms).status_code == 200
    assert Plan.objects.get(slug="gold").credits_per_second == 900
    path = f"keys/{api_key.pk}/limits"
    limits = program.result("PUT", path, {"plan": "gold", "burst": 5000})
    assert limits == program.result("GET", path)
    assert limits["effective"] == {
        "credits_per_second": 900,
        "burst": 5000,
        "credits_per_day": 10**6,
    }
    assert last_event(api_key.pk).type == EventType.LIMITS_CHANGED
    told = program.problem("PUT", path, {"plan": "lead", "burst": 1})
    assert set(told["errors"]) == {"plan", "burst"}


def test_request_for_access_is_decided(
    program: Program, api_key: ApiKey, alpha: Network
) -> None:
    wish = request_access(api_key=api_key, network=alpha, reason="debugging")
    waiting = program.result("GET", "access-requests?status=pending")["results"]
    assert [one["id"] for one in waiting] == [wish.pk]
    path = f"access-requests/{wish.pk}"
    approved = program.result("POST", f"{path}/approve", {"tracers": ["callTracer"]})
    assert approved["status"] == AccessStatus.APPROVED
    assert Entitlement.objects.get().tracers == ["callTracer"]
    send_waiting()
    assert mail.outbox[0].to == ["customer@example.org"]
    told = program.problem("POST", f"{path}/decline", {"answer": "no"})
    assert told["status"] == 409
    other = request_access(api_key=api_key, network=make_network("beta"), reason="more")
    path = f"access-requests/{other.pk}/decline"
    assert "answer" in program.problem("POST", path, {})["errors"]
    assert program.result("POST", path, {"answer": "no"})["status"] == "declined"


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({"id": 7, "owner": 1, "is_enabled": False}, {"id", "owner", "is_enabled"}),
        ({"created_by": 1, "deleted_at": None}, {"created_by", "deleted_at"}),
        ({"networks": ["nowhere"]}, {"networks"}),
        ({"expires_at": "2001-01-01T00:00:00Z"}, {"expires_at"}),
        ({"name": "x" * 101}, {"name"}),
        ([], {"body"}),
    ],
)
def test_wrong_fields_are_named_and_change_nothing(
    program: Program, api_key: ApiKey, body: Any, fields: set[str]
) -> None:
    before = ApiKey.objects.filter(pk=api_key.pk).values().get()
    told = program.problem("PATCH", f"keys/{api_key.pk}", body)
    assert (told["status"], set(told["errors"])) == (400, fields)
    assert ApiKey.objects.filter(pk=api_key.pk).values().get() == before


def test_repeated_request_issues_one_key_and_shows_its_secret_once(
    program: Program, customer: User
) -> None:
    wanted = {"customer": customer.pk, "with_secret": True}
    first = program.ask("POST", "keys", wanted, **{"Idempotency-Key": "a-1"})
    again = program.ask("POST", "keys", wanted, **{"Idempotency-Key": "a-1"})
    assert (first.status_code, again.status_code) == (201, 201)
    assert again["Idempotency-Replayed"] == "true"
    assert again.json() == {**first.json(), "secret": None}
    assert ApiKey.objects.count() == 1
    assert first.json()["secret"] not in str(RepeatedRequest.objects.values().get())
    other = {"customer": customer.pk, "name": "other"}
    headers = {"Idempotency-Key": "a-1"}
    assert program.problem("POST", "keys", other, **headers)["status"] == 422


def test_refused_request_may_be_mended_under_the_same_key(
    program: Program, customer: User
) -> None:
    headers = {"Idempotency-Key": "b-1"}
    assert program.problem("POST", "keys", {}, **headers)["status"] == 400
    program.result("POST", "keys", {"customer": customer.pk}, **headers)
    headers = {"Idempotency-Key": "with space"}
    told = program.problem("POST", "keys", {"customer": customer.pk}, **headers)
    assert set(told["errors"]) == {"Idempotency-Key"}


def test_pages_of_a_list_stay_in_place_while_it_grows(
    program: Program, customer: User
) -> None:
    made = [create_key(owner=customer).pk for _ in range(5)]
    page = program.result("GET", "keys?page_size=2")
    create_key(owner=get_or_create_customer(email="late@example.org"))
    seen = [one["id"] for one in page["results"]]
    while page["next"]:
        page = program.result("GET", page["next"])
        seen += [one["id"] for one in page["results"]]
    assert seen == made[::-1]


def test_unknown_parameters_are_refused(program: Program) -> None:
    told = program.problem("GET", "keys?colour=red&customer=x&state=lost")
    assert set(told["errors"]) == {"colour", "customer", "state"}


@pytest.mark.django_db(transaction=True)
def test_events_are_followed_by_their_numbers(
    program: Program, api_key: ApiKey
) -> None:
    first = KeyEvent.objects.get()
    program.result("PATCH", f"keys/{api_key.pk}", {"name": "new"})
    settle()
    found = program.result("GET", f"events?after={first.pk}")["results"]
    assert [(one["type"], one["token"]) for one in found] == [
        ("key.updated", "billing")
    ]
    assert found[0]["actor"] == "staff@example.org"
    named = program.result("GET", f"events?key={api_key.pk}&type=key.created")
    assert [one["id"] for one in named["results"]] == [first.pk]


@pytest.mark.django_db(transaction=True)
def test_reader_of_events_misses_none_that_is_committed_late(
    program: Program, customer: User
) -> None:
    first, second = create_key(owner=customer), create_key(owner=customer)
    last = KeyEvent.objects.latest("id").pk
    written, seen = Event(), Event()

    def change_slowly() -> None:
        with transaction.atomic():
            update_key(api_key=first, name="slow")
            written.set()
            assert seen.wait(PATIENCE_SECONDS)

    def follow() -> list[str]:
        found = program.result("GET", f"events?after={last}")["results"]
        return [one["data"]["name"][1] for one in found]

    def change_and_follow() -> list[str]:
        assert written.wait(PATIENCE_SECONDS)
        try:
            update_key(api_key=second, name="quick")
            return follow()
        finally:
            seen.set()

    assert at_once(change_slowly, change_and_follow) == [None, []]
    settle()
    assert follow() == ["slow", "quick"]


@pytest.mark.django_db(transaction=True)
def test_event_waits_for_a_change_that_began_later_and_was_numbered_earlier(
    program: Program, customer: User
) -> None:
    first, second = create_key(owner=customer), create_key(owner=customer)
    last = KeyEvent.objects.latest("id").pk
    begun, written, seen = Event(), Event(), Event()

    def follow() -> list[str]:
        found = program.result("GET", f"events?after={last}")["results"]
        return [one["data"]["name"][1] for one in found]

    def begin_first_and_follow() -> list[str]:
        with transaction.atomic():
            lock(first)
            begun.set()
            assert written.wait(PATIENCE_SECONDS)
            record(first, EventType.UPDATED, SYSTEM, name=["", "first to begin"])
        try:
            return follow()
        finally:
            seen.set()

    def write_first() -> None:
        assert begun.wait(PATIENCE_SECONDS)
        with transaction.atomic():
            update_key(api_key=second, name="first to write")
            written.set()
            assert seen.wait(PATIENCE_SECONDS)

    assert at_once(begin_first_and_follow, write_first) == [[], None]
    settle()
    assert follow() == ["first to write", "first to begin"]
