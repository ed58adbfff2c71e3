"""Concurrent changes: none is made twice, and there are no deadlocks."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

import pytest
from django.contrib.auth import authenticate
from django.core.exceptions import ValidationError
from django.db import transaction
from django.test import RequestFactory
from django.utils import timezone

from keys.accounts.links import LinkUseless, make_account, make_token
from keys.login import MAX_FAILURES_OF_PAIR
from keys.models import (
    AccountMail,
    EventType,
    Invitation,
    KeyEvent,
    LoginFailure,
    MemberEvent,
    Membership,
    Plan,
    User,
)
from keys.services import (
    SYSTEM,
    Actor,
    InvitationUseless,
    accept_invitation,
    get_or_create_customer,
    grant_entitlement,
    invite,
    issue_key,
    remove_member,
    switch_customer,
    update_key,
    withdraw_entitlement,
)
from keys.services.events import lock
from keys.services.limits import set_plan
from tests.support.rows import make_network
from tests.support.threads import at_once, held_up, outcome

pytestmark = pytest.mark.django_db(transaction=True)

TIMES = 12


def test_guesses_at_once_are_counted_like_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    user = User.objects.create_user("owner@example.org", "a long pass phrase")
    looked_at = []
    right = User.check_password

    def check(self: User, password: str) -> bool:
        looked_at.append(password)
        return right(self, password)

    monkeypatch.setattr(User, "check_password", check)
    request = RequestFactory().post("/account/login", REMOTE_ADDR="192.0.2.1")

    def guess(number: int) -> object:
        return authenticate(request, username=user.email, password=f"guess {number}")

    found = at_once(*[lambda n=n: guess(n) for n in range(TIMES)])
    assert found == [None] * TIMES
    assert len(looked_at) == MAX_FAILURES_OF_PAIR
    assert LoginFailure.objects.count() == MAX_FAILURES_OF_PAIR


def test_customer_is_made_once() -> None:
    found = at_once(*[lambda: get_or_create_customer(email="New@example.org")] * TIMES)
    assert found == [User.objects.get()] * TIMES


def test_of_two_links_to_one_address_one_makes_the_account() -> None:
    mails = [AccountMail.objects.create(email="new@example.org") for _ in range(4)]
    found = at_once(
        *[lambda m=m: make_account(make_token(m), "a long pass phrase") for m in mails]
    )
    assert sum(isinstance(one, User) for one in found) == 1
    assert sum(isinstance(one, LinkUseless) for one in found) == 3
    assert AccountMail.objects.exclude(used_at=None).count() == 1


def test_entitlement_is_withdrawn_once() -> None:
    network = make_network("alpha")
    api_key = issue_key(owner=get_or_create_customer(email="o@example.org")).api_key
    granted = grant_entitlement(api_key=api_key, network=network)
    at_once(*[lambda: withdraw_entitlement(entitlement=granted)] * 4)
    revoked = KeyEvent.objects.filter(type=EventType.ENTITLEMENT_REVOKED)
    assert revoked.count() == 1


def test_plan_is_made_once() -> None:
    def set_pro() -> tuple[Plan, bool]:
        return set_plan(slug="pro", name="Pro", credits_per_day=1000)

    with transaction.atomic():
        made = set_pro()
        waiting = held_up(set_pro)
    assert [made, outcome(waiting)] == [
        (Plan.objects.get(), True),
        (Plan.objects.get(), False),
    ]


def test_one_of_two_plans_becomes_the_default_one() -> None:
    def set_default(slug: str) -> tuple[Plan, bool]:
        return set_plan(slug=slug, name=slug, is_default=True)

    with transaction.atomic():
        set_default("free")
        waiting = held_up(lambda: set_default("pro"))
    error = outcome(waiting)
    assert isinstance(error, ValidationError)
    assert error.messages == ["Another plan is the default. Unset it there first."]
    assert Plan.objects.get().slug == "free"


def test_account_is_switched_off_while_its_user_changes_a_key() -> None:
    owner = get_or_create_customer(email="owner@example.org")
    api_key = issue_key(owner=owner).api_key
    expires_at = timezone.now() + timedelta(days=1)
    with transaction.atomic():
        lock(api_key)
        switching = at_once(lambda: switch_customer(user=owner, is_active=False))
        update_key(api_key=api_key, expires_at=expires_at, actor=Actor(owner))
    assert switching == [owner]
    api_key.refresh_from_db()
    assert api_key.expires_at == expires_at
    assert not User.objects.get().is_active


def test_changes_of_a_key_wait_for_each_other() -> None:
    api_key = issue_key(owner=get_or_create_customer(email="o@example.org")).api_key
    with transaction.atomic():
        lock(api_key)
        waiting = held_up(lambda: update_key(api_key=api_key, name="second"))
        update_key(api_key=api_key, name="first", actor=SYSTEM)
    assert outcome(waiting) == api_key
    changes = KeyEvent.objects.filter(type=EventType.UPDATED).order_by("id")
    assert [event.data["name"] for event in changes] == [
        ["", "first"],
        ["first", "second"],
    ]


def test_invitation_is_accepted_once() -> None:
    account, bob = (
        User.objects.create_user(f"{name}@example.org") for name in ("account", "bob")
    )
    token = invite(account=account, email=bob.email, role="viewer").token
    accept = partial(accept_invitation, token=token, user=bob, actor=Actor(bob))
    found = at_once(*[accept] * 4)
    assert sum(isinstance(one, Membership) for one in found) == 1
    assert sum(isinstance(one, InvitationUseless) for one in found) == 3
    assert MemberEvent.objects.filter(type="member.joined").count() == 1


def test_owner_who_is_removed_in_between_sends_no_invitation() -> None:
    account, bob = (
        User.objects.create_user(f"{name}@example.org") for name in ("account", "bob")
    )
    membership = Membership.objects.create(account=account, member=bob, role="owner")
    with transaction.atomic():
        remove_member(membership=membership, actor=Actor(account))
        late = held_up(
            lambda: invite(
                account=account, email="x@example.org", role="owner", actor=Actor(bob)
            )
        )
    assert isinstance(outcome(late), ValidationError)
    assert not Invitation.objects.exists()
