"""Many concurrent requests and large bodies for Django's pages, in a real process."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import httpx
import pytest
from django.db import connection

from config import pages
from config.pages import MAX_BODY_BYTES, Pages
from keys.api import problems
from tests.support import web
from tests.support.dapps import orm
from tests.support.service import run_service
from tests.support.waiting import PATIENCE_SECONDS

pytestmark = pytest.mark.django_db(transaction=True)

CROWD = 200

OPEN = """
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()
"""


def open_connections() -> int:
    with connection.cursor() as cursor:
        cursor.execute(OPEN)
        (count,) = cursor.fetchone()
    return int(count)


def test_a_crowd_takes_no_more_connections_than_are_kept() -> None:
    """Each request looks up a pairing code, and waits for the same lock."""

    async def crowd(address: str) -> list[Any]:
        async with httpx.AsyncClient(
            timeout=PATIENCE_SECONDS, limits=httpx.Limits()
        ) as http:
            asking = [
                asyncio.create_task(http.post(address, data={"code": "BBBB-BBBB"}))
                for _ in range(CROWD)
            ]
            while not all(one.done() for one in asking):
                seen.append(await orm(open_connections))
                await asyncio.wait(asking, timeout=0.02)
            return [one.result() for one in asking]

    seen: list[int] = []
    with run_service() as running:
        before = open_connections()
        answers = asyncio.run(crowd(f"{running.base_url}/wallet/token"))
    assert {answer.status_code for answer in answers} == {400}
    # DATABASE_POOL connections, and the connection of this query.
    assert 0 < max(seen) - before <= 16 + 1


OF_PAGES = """
    FROM pg_stat_activity
    WHERE datname = current_database() AND application_name <> 'portcullis'
        AND pid <> pg_backend_pid() AND backend_type = 'client backend'
"""


def of_pages(what: str = "pid") -> set[Any]:
    """Return an SQL expression for each database connection of pages."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {what} {OF_PAGES}")
        return {value for (value,) in cursor.fetchall()}


def test_pages_find_the_connections_of_earlier_ones() -> None:
    """There may be more than one, because periodic tasks of the wallet need their own."""
    others = of_pages()
    with run_service() as running:
        page = running.base_url + "/docs/networks"
        assert web.get(page).status_code == 200
        taken = of_pages() - others
        assert taken
        for _ in range(2 * 16):
            assert web.get(page).status_code == 200
        assert taken <= of_pages()
        assert len(of_pages() - others) < 16


def test_connection_that_was_lost_is_replaced_unseen() -> None:
    with run_service() as running:
        page = running.base_url + "/docs/networks"
        assert web.get(page).status_code == 200
        lost = of_pages()
        assert of_pages("pg_terminate_backend(pid)") == {True}
        assert web.get(page).status_code == 200
        assert not of_pages() & lost


def endless() -> Iterator[bytes]:
    """Yield a body that is longer than allowed, in chunks."""
    for _ in range(64):
        yield b"x" * 65_536


def detail(answer: httpx.Response) -> str:
    """Return the text of an error, which is in problem details for the management API."""
    if "/api/" not in str(answer.request.url):
        return answer.text
    assert answer.headers["content-type"] == problems.MEDIA_TYPE
    found = answer.json()
    assert found["status"] == answer.status_code
    assert found["type"].startswith("/docs/management#")
    return str(found["detail"])


def test_body_that_is_too_long_or_compressed_is_refused() -> None:
    form = {"content-type": "application/x-www-form-urlencoded"}
    with run_service() as running:
        for path in ("/account/login", "/api/v1/keys", "/nowhere"):
            address = running.base_url + path
            for body in (b"x" * (MAX_BODY_BYTES + 1), endless()):
                answer = web.post(address, content=body, headers=form)
                assert answer.status_code == 413
                assert detail(answer) in (
                    "Request Entity Too Large\n",
                    "The body is longer than 1 MiB.",
                )
            packed = {**form, "content-encoding": "gzip"}
            answer = web.post(address, content=b"x", headers=packed)
            assert answer.status_code == 415
            assert answer.headers["accept-encoding"] == "identity"
            assert "send the body without Content-Encoding" in detail(answer)
            taken = web.post(address, content=b"x" * MAX_BODY_BYTES, headers=form)
            assert taken.status_code in (401, 403, 404)


@pytest.mark.parametrize("zeros", [5_000, 40_000])
def test_content_length_of_any_number_of_digits_is_understood(zeros: int) -> None:
    form, json = "application/x-www-form-urlencoded", "application/json"
    paths = {
        "/wallet/token": (form, b"400"),  # no such code
        "/account/login": (form, b"403"),  # no CSRF token
        "/admin/login/": (form, b"403"),
        "/api/v1/keys": (json, b"401"),
        "/nowhere": (form, b"404"),
        "/v3/nk_x": (json, b"401"),
        "/livez": (json, b"405"),
    }
    with run_service() as running:
        address = running.listeners[0].getsockname()
        for path, (kind, status) in paths.items():
            for digits, expected in ((f"{0:0{zeros}}8", status), ("9" * zeros, b"400")):
                head = f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: {kind}\r\n"
                with socket.create_connection(address, PATIENCE_SECONDS) as client:
                    client.sendall(f"{head}content-length: {digits}\r\n\r\n".encode())
                    with suppress(ConnectionError):  # the request was rejected
                        client.sendall(b"code=abc")
                    assert client.recv(1000).split()[1] == expected, path


def test_body_that_stops_coming_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "BODY_SECONDS", 0.05)
    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    async def ask() -> None:
        begun: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        await begun.put({"type": "http.request", "body": b"a", "more_body": True})
        scope = {"type": "http", "method": "POST", "path": "/account/login"}
        await Pages()(scope, begun.get, send)

    asyncio.run(ask())
    assert sent[0]["status"] == 408
    assert (b"connection", b"close") in sent[0]["headers"]


def test_request_that_can_not_close_its_connections_returns_its_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If the client has disconnected, its thread may no longer accept work."""

    def refuse() -> None:
        raise RuntimeError("CurrentThreadExecutor already quit or is broken")

    monkeypatch.setattr(pages.connections, "close_all", refuse)
    application = Pages()
    transport = httpx.ASGITransport(application)

    async def ask() -> list[int]:
        async with httpx.AsyncClient(
            transport=transport, base_url="http://localhost"
        ) as http:
            async with asyncio.timeout(PATIENCE_SECONDS):
                return [
                    (await http.get("/docs/authentication")).status_code
                    for _ in range(pages.AT_ONCE + 1)
                ]

    found = asyncio.run(ask())
    assert found == [200] * (pages.AT_ONCE + 1)
