"""Rules that hold for each URL that Django serves, including new ones.

The addresses come from the URL configuration, with a value for each argument.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import pytest
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from keys.models import User
from tests.support.rows import make_network

pytestmark = pytest.mark.django_db

ARGUMENTS = {
    None: "1",
    "int": "1",
    "str": "x",
    "path": "1",
    "slug": "alpha",
    "hash": "0x" + "ab" * 32,
    "address": "0x" + "ab" * 20,
    "number": "7",
}
"""Arguments by converter. Of these objects, only the network exists."""

LABEL = re.compile(r"\^\(\?P<app_label>[a-z|]+\)/\$")
CATCH_ALL = r"(?P<url>.*)$"
"""Addresses of the admin that are regular expressions."""

WITHOUT_TOKEN = ("/api/v1/", "/wallet/token")
"""Addresses for programs, which authenticate with a secret and not with a cookie."""

EVIL = "https://evil.example/"
ENDING = "\r\nX-Injected: yes"


def walk(
    patterns: Sequence[URLPattern | URLResolver], start: str = "/"
) -> Iterator[tuple[str, URLPattern]]:
    """Yield every address with its view."""
    for entry in patterns:
        route = start + str(entry.pattern)
        if isinstance(entry, URLResolver):
            yield from walk(entry.url_patterns, route)
        else:
            route = LABEL.sub("keys/", route).replace(CATCH_ALL, "nothing")
            named = re.sub(r"<(?:(\w+):)?\w+>", lambda m: ARGUMENTS[m[1]], route)
            yield named, entry


ADDRESSES = dict(walk(get_resolver().url_patterns))
EXEMPT = [
    path
    for path, entry in ADDRESSES.items()
    if getattr(entry.callback, "csrf_exempt", False)
]


@pytest.fixture
def superuser(db: None) -> User:
    make_network("alpha")
    return User.objects.create_superuser("staff@example.org")


@pytest.fixture
def browsers(superuser: User) -> list[Client]:
    """Return clients of an anonymous visitor, a customer and a superuser."""
    customer = User.objects.create_user("customer@example.org")
    found = []
    for user in (None, customer, superuser):
        client = Client(raise_request_exception=False)
        if user is not None:
            client.force_login(user)
        found.append(client)
    return found


def test_addresses_are_all_there() -> None:
    assert len(ADDRESSES) > 200
    assert not [path for path in ADDRESSES if re.search(r"[<>()^$]", path)]


def test_only_programs_may_leave_the_token_out() -> None:
    assert [path for path in EXEMPT if not path.startswith(WITHOUT_TOKEN)] == []


def test_forms_of_other_sites_are_refused_everywhere(superuser: User) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(superuser)
    answers = {
        path: client.post(path, headers={"origin": "https://evil.example"}).status_code
        for path in ADDRESSES
        if path not in EXEMPT
    }
    assert {path: code for path, code in answers.items() if code != 403} == {}


def test_cookie_opens_nothing_to_programs(superuser: User) -> None:
    """A session cookie does not authenticate requests to views that are exempt from CSRF."""
    client = Client(enforce_csrf_checks=True)
    client.force_login(superuser)
    for path in EXEMPT:
        answer = client.post(path, {}, content_type="application/json")
        assert answer.status_code in (400, 401, 404, 405), path


def get_all(client: Client, query: dict[str, str]) -> Iterator[tuple[str, Any]]:
    for path in ADDRESSES:
        if not path.startswith("/admin/logout"):
            yield path, client.get(path, query)


def test_no_page_fails_stands_in_a_frame_or_is_guessed_at(
    browsers: list[Client], settings: Any
) -> None:
    """No page repeats the Host header either, if the service's own URL is known."""
    settings.PUBLIC_URL = "https://rpc.example"
    for client in browsers:
        for path, answer in get_all(client, {}):
            assert answer.status_code < 500, path
            assert b"testserver" not in answer.content, path
            assert answer["X-Frame-Options"] == "DENY", path
            assert answer["X-Content-Type-Options"] == "nosniff", path
            assert answer["Referrer-Policy"] in ("same-origin", "no-referrer"), path


def test_no_page_answers_under_another_host(db: None, settings: Any) -> None:
    settings.ALLOWED_HOSTS = ["node.example"]
    client = Client(SERVER_NAME="evil.example")
    for path, answer in get_all(client, {}):
        assert answer.status_code == 400, path
        assert b"evil.example" not in answer.content, path


ELSEWHERE = (EVIL, "//evil.example/", "\\\\evil.example", f"/{ENDING}")
"""Places that a page must not lead to. Those of accounts, which lead to the next page, get
all of them, and others one in turn."""


def test_no_page_leads_to_another_site_or_sends_what_it_got_as_a_header(
    browsers: list[Client],
) -> None:
    names = ("next", "url", "return_to", "redirect_uri")
    for client, (turn, path) in product(browsers[::2], enumerate(ADDRESSES)):
        if path.startswith("/admin/logout"):
            continue
        leads = path.startswith(("/account", "/admin/log"))
        for place in ELSEWHERE if leads else (ELSEWHERE[turn % len(ELSEWHERE)],):
            given = {**dict.fromkeys(names, place), "q": ENDING, "range": ENDING}
            answer = client.get(path, given)
            assert answer.status_code < 500, path
            leads_to = answer.headers.get("Location", "/")
            assert re.match(r"/(?![/\\])|https?://testserver/", leads_to), path
            assert "X-Injected" not in answer.headers, path
            assert not [value for value in answer.headers.values() if "\n" in value]


def test_log_in_takes_up_no_session_of_an_attacker() -> None:
    User.objects.create_superuser("staff@example.org", "a long pass phrase")
    for path in ("/account/login", "/admin/login/"):
        client = Client()
        client.get(path)
        session = client.session
        session["planted"] = True
        session.save()
        client.cookies["sessionid"] = planted = session.session_key
        form = {"username": "staff@example.org", "password": "a long pass phrase"}
        assert client.post(path, form).status_code == 302
        assert client.cookies["sessionid"].value != planted
        assert (
            Client(cookies={"sessionid": planted}).get("/dashboard/").status_code == 302
        )
