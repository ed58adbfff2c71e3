"""Each page of the dashboard requires a role in the account that it acts for."""

from __future__ import annotations

from itertools import product

import pytest
from django.db import transaction
from django.test import Client

from keys.dashboard.urls import urlpatterns
from keys.models import (
    AccessRequest,
    KeyEvent,
    MemberEvent,
    Membership,
    Role,
    User,
)
from keys.services import request_access
from tests.keys.dashboard.conftest import Customer, join, text
from tests.keys.dashboard.test_security import path_of

OWNER, DEVELOPER, VIEWER = Role.OWNER, Role.DEVELOPER, Role.VIEWER

NEEDED: dict[str, tuple[Role | None, Role | None]] = {
    "keys": (VIEWER, None),
    "switch": (None, VIEWER),
    "members": (VIEWER, None),
    "invite": (OWNER, OWNER),
    "leave": (VIEWER, VIEWER),
    "change_role": (None, OWNER),
    "remove_member": (OWNER, OWNER),
    "resend_invitation": (None, OWNER),
    "withdraw_invitation": (None, OWNER),
    "first": (None, DEVELOPER),
    "create": (DEVELOPER, DEVELOPER),
    "key": (VIEWER, None),
    "rename": (None, DEVELOPER),
    "disable": (None, DEVELOPER),
    "enable": (None, DEVELOPER),
    "delete": (DEVELOPER, DEVELOPER),
    "reveal": (None, DEVELOPER),
    "roll": (DEVELOPER, DEVELOPER),
    "revoke": (DEVELOPER, DEVELOPER),
    "connect": (VIEWER, None),
    "allowlists": (VIEWER, DEVELOPER),
    "tracing": (VIEWER, None),
    "ask": (DEVELOPER, DEVELOPER),
    "withdraw": (None, DEVELOPER),
    "usage": (VIEWER, None),
    "usage_csv": (VIEWER, None),
    "activity": (VIEWER, None),
    "activity_csv": (VIEWER, None),
}
"""The least roles for GET and POST of each page. None: the page has no such method.

A new page is added here. Decide who may use it, and declare it with `dashboard_page`.
"""


@pytest.fixture
def asked(customer: Customer, alpha) -> AccessRequest:
    return request_access(api_key=customer.key, network=alpha, reason="x")


def lines() -> int:
    return KeyEvent.objects.count() + MemberEvent.objects.count()


def test_every_page_has_its_roles() -> None:
    assert {pattern.name for pattern in urlpatterns} == set(NEEDED)


@pytest.mark.parametrize("role", Role)
def test_pages_are_shown_to_the_roles_that_may_use_them(
    customer: Customer, asked: AccessRequest, role: Role
) -> None:
    client = join(customer, role)
    sent = {"account": customer.user.pk, "kind": "ip", "entries": ""}
    paths = {each.name: path_of(each, customer, asked) for each in urlpatterns}
    before = lines()
    for (name, path), method in product(paths.items(), ("get", "post")):
        needed = NEEDED[name][method == "post"]
        with transaction.atomic():
            status = getattr(client, method)(path, sent).status_code
            if needed is None:
                assert status in (403, 405), (method, path)
            elif role.includes(needed):
                assert status in (200, 302, 400), (method, path)
            else:
                assert status == 403, (method, path)
                assert lines() == before, (method, path)
            transaction.set_rollback(True)


def test_former_member_and_stranger_find_nothing(
    customer: Customer, stranger: Customer, asked: AccessRequest
) -> None:
    paths = [path_of(pattern, customer, asked) for pattern in urlpatterns]
    former = join(customer, Role.OWNER)
    Membership.objects.filter(member__email="member@example.org").delete()
    before = lines()
    for client in (former, stranger.client):
        for path, method in product(paths, ("get", "post")):
            sent = {"account": customer.user.pk}
            answer = getattr(client, method)(path, sent)
            assert answer.status_code == 404, (method, path)
    assert lines() == before


def test_deactivated_member_is_logged_out_at_once(
    customer: Customer, asked: AccessRequest
) -> None:
    paths = [path_of(pattern, customer, asked) for pattern in urlpatterns]
    client = join(customer, Role.OWNER)
    User.objects.filter(email="member@example.org").update(is_active=False)
    for path, method in product(paths, ("get", "post")):
        answer = getattr(client, method)(path)
        assert (answer.status_code, answer["Location"]) == (
            302,
            f"/account/login?next={path}",
        )


def test_members_find_nothing_in_a_deactivated_account(customer: Customer) -> None:
    client = join(customer, Role.OWNER)
    assert client.get(customer.path()).status_code == 200
    User.objects.filter(pk=customer.user.pk).update(is_active=False)
    assert client.get(customer.path()).status_code == 404
    assert client.get("/dashboard/").context["request"].acting.is_own


def test_role_changes_take_effect_with_the_next_request(customer: Customer) -> None:
    client = join(customer, Role.DEVELOPER)
    assert client.get(customer.path("roll")).status_code == 200
    Membership.objects.update(role=Role.VIEWER)
    refused = client.get(customer.path("roll"))
    assert refused.status_code == 403
    assert "You are a viewer" in text(refused)
    assert "requires the role developer" in text(refused)


def test_viewers_are_offered_no_changes(customer: Customer) -> None:
    client = join(customer, Role.VIEWER)
    offered = {
        path: text(client.get(customer.path(path)))
        for path in ("", "tracing", "allowlists")
    }
    assert customer.issued.version.hint in offered[""]
    for page in (*offered.values(), text(client.get("/dashboard/"))):
        main = page.partition("<main")[2]
        for words in (
            "<button",
            "Roll the key…",
            "Revoke…",
            "Delete…",
            "Request access",
        ):
            assert words not in main
    assert "Create a key" not in text(client.get("/dashboard/"))


def test_anonymous_users_log_in_first(customer: Customer) -> None:
    answer = Client().post("/dashboard/account", {"account": customer.user.pk})
    assert answer["Location"].startswith("/account/login")
