from __future__ import annotations

import re
from functools import cached_property
from typing import Any

import pytest
from django.test import Client

from keys.models import ApiKey, Invitation, Membership, Role, User
from keys.services import IssuedKey, invite, issue_key
from networks.models import Network
from tests.support.rows import make_network


class Customer:
    """A customer with a key, and a browser in which they are logged in."""

    def __init__(self, email: str) -> None:
        self.user = User.objects.create_user(email, "a password")
        self.client = Client()
        self.client.force_login(self.user)
        self.issued: IssuedKey = issue_key(owner=self.user, name="First")
        self.key: ApiKey = self.issued.api_key

    @cached_property
    def member(self) -> Membership:
        """Another user, who is a developer of the account."""
        user = User.objects.create_user(f"colleague.of.{self.user.email}")
        return Membership.objects.create(
            account=self.user, member=user, role=Role.DEVELOPER
        )

    @cached_property
    def invitation(self) -> Invitation:
        email = f"invited.by.{self.user.email}"
        return invite(account=self.user, email=email, role=Role.VIEWER).invitation

    def page(self, path: str = "", **query: str) -> str:
        """Return a page of the key."""
        answer = self.client.get(self.path(path), query)
        assert answer.status_code == 200, answer
        return text(answer)

    def post(self, path: str = "", **data: Any) -> Any:
        """Send a form of the key's pages."""
        return self.client.post(self.path(path), data)

    def path(self, path: str = "") -> str:
        return f"/dashboard/keys/{self.key.pk}{path and '/' + path}"

    def events(self) -> list[str]:
        """Return the events of the key, the oldest first."""
        return list(self.key.events.order_by("id").values_list("type", flat=True))


def join(customer: Customer, role: str, email: str = "member@example.org") -> Client:
    """Return the browser of a member, who has chosen the customer's account."""
    user = User.objects.create_user(email, "a password")
    Membership.objects.create(account=customer.user, member=user, role=role)
    client = Client()
    client.force_login(user)
    client.post("/dashboard/account", {"account": customer.user.pk})
    return client


def text(answer: Any) -> str:
    """Return the visible text of a page."""
    return re.sub(r"\s+", " ", answer.content.decode())


def shown_secret(answer: Any) -> str:
    """Return the secret on a page that shows one."""
    (secret,) = re.findall(r'<pre id="secret"[^>]*>(\w+)</pre>', text(answer))
    return str(secret)


@pytest.fixture
def alpha(db: None) -> Network:
    return make_network("alpha", tracers=["callTracer", "prestateTracer"])


@pytest.fixture
def customer(alpha: Network) -> Customer:
    return Customer("customer@example.org")


@pytest.fixture
def stranger(alpha: Network) -> Customer:
    return Customer("stranger@example.org")
