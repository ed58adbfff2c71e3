"""Requests for tracing by customers, decisions by staff, and pages that show them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.core import mail
from django.core.exceptions import ValidationError
from django.utils import timezone

from keys.models import (
    AccessRequest,
    AccessStatus,
    ApiKey,
    Entitlement,
    EventType,
    KeyEvent,
    User,
)
from keys.notices.queue import send_waiting
from keys.services import (
    Actor,
    approve_access,
    create_key,
    decline_access,
    get_or_create_customer,
    request_access,
    withdraw_request,
)
from keys.services.access import MAX_REQUESTS_A_DAY
from networks.models import Network
from tests.support.rows import make_network

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def alpha() -> Network:
    return make_network("alpha")


@pytest.fixture
def customer() -> User:
    return get_or_create_customer(email="customer@example.org")


@pytest.fixture
def staff() -> User:
    return User.objects.create(email="staff@example.org", is_staff=True)


@pytest.fixture
def api_key(customer: User) -> ApiKey:
    return create_key(owner=customer, name="dapp")


@pytest.fixture
def asked(api_key: ApiKey, alpha: Network, customer: User) -> AccessRequest:
    return request_access(
        api_key=api_key,
        network=alpha,
        tracers=["callTracer"],
        reason=" debugging ",
        actor=Actor(customer),
    )


def test_approval_grants_and_is_reported(
    asked: AccessRequest, alpha: Network, staff: User
) -> None:
    expires_at = timezone.now() + timedelta(days=30)
    approve_access(request=asked, expires_at=expires_at, actor=Actor(staff))
    granted = Entitlement.objects.get()
    assert (granted.network, granted.tracers) == (alpha, ["callTracer"])
    assert (granted.expires_at, granted.granted_by) == (expires_at, staff)
    asked.refresh_from_db()
    assert (asked.status, asked.decided_by) == (AccessStatus.APPROVED, staff)
    assert asked.expires_at == expires_at
    send_waiting()
    (message,) = mail.outbox
    assert message.to == ["customer@example.org"]
    assert message.subject == "Tracing on Alpha: approved"
    assert f"granted until {expires_at:%Y-%m-%d %H:%M} UTC" in message.body
    assert "these tracers: callTracer. It works immediately." in message.body
    types = KeyEvent.objects.order_by("id").values_list("type", flat=True)
    assert list(types) == [
        "key.created",
        "access.requested",
        "entitlement.granted",
        "access.approved",
    ]


def test_staff_may_grant_other_tracers_than_were_asked_for(
    asked: AccessRequest,
) -> None:
    approve_access(request=asked, tracers=[], answer="all of them, gladly")
    assert Entitlement.objects.get().tracers == []
    send_waiting()
    assert "all tracers of the network" in mail.outbox[0].body
    assert "all of them, gladly" in mail.outbox[0].body


def test_declining_requires_a_reason_and_mails_it(
    asked: AccessRequest, staff: User
) -> None:
    with pytest.raises(ValidationError, match="reason for the customer"):
        decline_access(request=asked, answer="  ")
    decline_access(request=asked, answer="Only on <paid> plans.", actor=Actor(staff))
    assert not Entitlement.objects.exists()
    send_waiting()
    assert "The request was declined." in mail.outbox[0].body
    assert "Only on <paid> plans." in mail.outbox[0].body
    event = KeyEvent.objects.latest("id")
    assert event.type == EventType.ACCESS_DECLINED
    assert event.data["answer"] == "Only on <paid> plans."


def test_request_is_decided_once(asked: AccessRequest) -> None:
    withdraw_request(request=asked)
    send_waiting()
    assert not mail.outbox
    decisions: list[Callable[..., Any]] = [approve_access, withdraw_request]
    for decide in decisions:
        with pytest.raises(ValidationError, match="been decided: withdrawn"):
            decide(request=asked)
    with pytest.raises(ValidationError, match="been decided: withdrawn"):
        decline_access(request=asked, answer="no")
    assert not Entitlement.objects.exists()


def test_same_is_asked_once_at_a_time(asked: AccessRequest) -> None:
    again: dict[str, Any] = {
        "api_key": asked.api_key,
        "network": asked.network,
        "reason": "still",
    }
    with pytest.raises(ValidationError, match="already has a pending request"):
        request_access(**again)
    decline_access(request=asked, answer="no")
    assert request_access(**again).status == AccessStatus.PENDING


def test_what_makes_no_sense_is_not_asked(api_key: ApiKey, alpha: Network) -> None:
    beta = make_network("beta")
    alpha.tracers = ["callTracer"]
    alpha.save()
    api_key.networks.set([alpha])
    wishes: list[tuple[dict[str, Any], str]] = [
        ({"network": beta, "reason": "x"}, "has no access to beta"),
        ({"tracers": ["muxTracer"], "reason": "x"}, "does not offer muxTracer"),
        ({"reason": " "}, "cannot be blank"),
        ({"reason": "x" * 1001}, "at most 1000 characters"),
    ]
    for wish, told in wishes:
        with pytest.raises(ValidationError, match=told):
            request_access(**{"api_key": api_key, "network": alpha, **wish})
    assert not AccessRequest.objects.exists()


def test_number_of_requests_a_day_is_limited(api_key: ApiKey, alpha: Network) -> None:
    wish: dict[str, Any] = {"api_key": api_key, "network": alpha, "reason": "x"}
    for _ in range(MAX_REQUESTS_A_DAY):
        withdraw_request(request=request_access(**wish))
    with pytest.raises(ValidationError, match="requests for a key in 24 hours"):
        request_access(**wish)
    AccessRequest.objects.update(requested_at=timezone.now() - timedelta(days=1))
    assert request_access(**wish).status == AccessStatus.PENDING


def test_approval_that_makes_no_sense_decides_nothing(asked: AccessRequest) -> None:
    with pytest.raises(ValidationError, match="in the past"):
        approve_access(request=asked, expires_at=timezone.now())
    asked.refresh_from_db()
    assert asked.status == AccessStatus.PENDING
    send_waiting()
    assert not mail.outbox
