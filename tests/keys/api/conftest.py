"""Clients of the management API, and objects for them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.test import Client

from keys.api.throttling import gate
from keys.models import ApiKey, Scope, User
from keys.services import create_key, get_or_create_customer, issue_token
from networks.models import Network
from tests.support.rows import make_network


class Program:
    """Sends requests to the management API, with or without a token."""

    def __init__(self, secret: str | None) -> None:
        # CSRF checks are enabled, to show that requests without cookies pass them.
        self._client = Client(enforce_csrf_checks=True)
        self._secret = secret

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        content = b"" if body is None else json.dumps(body).encode()
        return self.send(method, path, content, **headers)

    def send(self, method: str, path: str, content: bytes, **headers: str) -> Any:
        if self._secret is not None:
            headers.setdefault("Authorization", f"Bearer {self._secret}")
        return self._client.generic(
            method,
            path if path.startswith("http") else f"/api/v1/{path}",
            content,
            content_type="application/json",
            headers=headers,
        )

    def result(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        answer = self.ask(method, path, body, **headers)
        assert answer.status_code < 300, answer.content
        return answer.json() if answer.content else None

    def problem(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        answer = self.ask(method, path, body, **headers)
        assert answer["Content-Type"] == "application/problem+json", answer.content
        told = answer.json()
        assert told["status"] == answer.status_code
        return told


@pytest.fixture(autouse=True)
def open_gate() -> Iterator[None]:
    gate.forget()
    yield
    gate.forget()


@pytest.fixture
def staff(db: None) -> User:
    return User.objects.create_superuser("staff@example.org")


@pytest.fixture
def with_scopes(staff: User) -> Callable[..., Program]:
    """Return a function that creates programs with exactly these scopes."""

    def make(*scopes: str) -> Program:
        issued = issue_token(owner=staff, name="billing", scopes=scopes)
        return Program(issued.secret)

    return make


@pytest.fixture
def program(with_scopes: Callable[..., Program]) -> Program:
    """Return a program with all scopes."""
    return with_scopes(*Scope.values)


@pytest.fixture
def alpha(db: None) -> Network:
    return make_network("alpha")


@pytest.fixture
def customer(db: None) -> User:
    return get_or_create_customer(email="customer@example.org")


@pytest.fixture
def api_key(customer: User) -> ApiKey:
    return create_key(owner=customer, name="dapp")
