"""Access to the pages, and their content policy."""

from __future__ import annotations

from http import HTTPStatus

import pytest
from django.test import Client
from django.urls import get_resolver, reverse

from tests.wallets.pages.conftest import Person
from wallets import urls

ROUTES = {
    pattern.name: pattern
    for pattern in urls.urlpatterns
    if pattern.name not in {"connect", "token"}
}
"""All routes except for those that dapps call."""


def address(name: str, person: Person) -> str:
    """Return the path of a wallet page that shows an object of this user."""
    route = str(ROUTES[name].pattern)
    if "<int:pk>" not in route:
        return reverse(f"wallet:{name}")
    if route.startswith("signatures"):
        pk = (person.dapp.requests.first() or person.asked_to_sign()).pk
    elif "/key" in route:
        pk = person.with_key().pk
    elif route.startswith("requests"):
        pk = (person.dapp.requests.first() or person.asked()).pk
    else:
        pk = person.account1.pk if route.startswith("accounts") else person.dapp.pk
    return reverse(f"wallet:{name}", args=[pk])


def test_the_routes_are_those_that_are_served():
    assert get_resolver().resolve("/wallet/accounts").url_name in ROUTES


@pytest.mark.parametrize("name", ROUTES)
@pytest.mark.parametrize("method", ["get", "post"])
def test_strangers_are_sent_to_the_log_in(person: Person, name, method):
    path = address(name, person)
    response = getattr(Client(), method)(path)
    assert response.status_code == HTTPStatus.FOUND
    assert response["Location"] == f"/account/login?next={path}"


@pytest.mark.parametrize(
    "name", [n for n in ROUTES if "<int" in str(ROUTES[n].pattern)]
)
@pytest.mark.parametrize("method", ["get", "post"])
def test_what_is_anothers_is_not_found(person: Person, stranger: Person, name, method):
    response = getattr(stranger.client, method)(address(name, person))
    expected = {HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED}
    assert response.status_code in expected
    assert method == "get" or response.status_code == HTTPStatus.NOT_FOUND


@pytest.mark.parametrize("name", ROUTES)
def test_changes_need_the_csrf_token(person: Person, name):
    client = Client(enforce_csrf_checks=True)
    client.force_login(person.user)
    assert client.post(address(name, person)).status_code == HTTPStatus.FORBIDDEN


@pytest.mark.parametrize("name", ROUTES)
def test_pages_are_neither_kept_nor_framed_nor_scripted_by_others(person, name):
    response = person.client.get(address(name, person))
    assert response["Cache-Control"] == "private, no-store"
    assert response["X-Frame-Options"] == "DENY"
    assert response["Cross-Origin-Opener-Policy"] == "same-origin"
    policy = dict(
        part.split(" ", 1) for part in response["Content-Security-Policy"].split("; ")
    )
    assert policy["default-src"] == "'none'"
    assert policy["frame-ancestors"] == "'none'"
    assert policy["base-uri"] == "'none'"
    assert "unsafe" not in response["Content-Security-Policy"]
    assert b"<script>" not in response.content
    assert b" style=" not in response.content


def test_numbers_beyond_all_rows_are_not_found(person: Person):
    response = person.client.get(f"/wallet/connections/{10**30}")
    assert response.status_code == HTTPStatus.NOT_FOUND
