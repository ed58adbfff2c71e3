"""Access to the pages, and their content policy."""

from __future__ import annotations

from http import HTTPStatus

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
        signatures = person.dapp.requests.filter(method="personal_sign")
        pk = (signatures.first() or person.asked_to_sign()).pk
    elif "/key" in route:
        pk = person.with_key().pk
    elif route.startswith("requests"):
        others = person.dapp.requests.exclude(method="personal_sign")
        pk = (others.first() or person.asked()).pk
    else:
        pk = person.account1.pk if route.startswith("accounts") else person.dapp.pk
    return reverse(f"wallet:{name}", args=[pk])


def test_the_routes_are_those_that_are_served():
    assert get_resolver().resolve("/wallet/accounts").url_name in ROUTES


def test_strangers_are_sent_to_the_log_in(person: Person):
    for name in ROUTES:
        path = address(name, person)
        for response in (Client().get(path), Client().post(path)):
            assert response.status_code == HTTPStatus.FOUND, path
            assert response["Location"] == f"/account/login?next={path}"


def test_what_is_anothers_is_not_found(person: Person, stranger: Person):
    for name in [name for name in ROUTES if "<int" in str(ROUTES[name].pattern)]:
        path = address(name, person)
        assert stranger.client.post(path).status_code == HTTPStatus.NOT_FOUND, path
        expected = {HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED}
        assert stranger.client.get(path).status_code in expected, path


def test_changes_need_the_csrf_token(person: Person):
    client = Client(enforce_csrf_checks=True)
    client.force_login(person.user)
    for name in ROUTES:
        status = client.post(address(name, person)).status_code
        assert status == HTTPStatus.FORBIDDEN, name


def test_pages_are_neither_kept_nor_framed_nor_scripted_by_others(person: Person):
    for name in ROUTES:
        response = person.client.get(address(name, person))
        assert response["Cache-Control"] == "private, no-store", name
        assert response["X-Frame-Options"] == "DENY", name
        assert response["Cross-Origin-Opener-Policy"] == "same-origin", name
        found = response["Content-Security-Policy"]
        policy = dict(part.split(" ", 1) for part in found.split("; "))
        for directive in ("default-src", "frame-ancestors", "base-uri"):
            assert policy[directive] == "'none'", name
        assert "unsafe" not in found, name
        assert b"<script>" not in response.content, name
        assert b" style=" not in response.content, name


def test_numbers_beyond_all_rows_are_not_found(person: Person):
    response = person.client.get(f"/wallet/connections/{10**30}")
    assert response.status_code == HTTPStatus.NOT_FOUND
