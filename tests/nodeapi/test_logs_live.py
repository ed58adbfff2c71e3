"""The most verbose log of a service contains no API keys."""

from __future__ import annotations

import base64
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, urlsplit

import psycopg
import pytest

from keys.models import User
from tests.support import chains, sample, web
from tests.support.live import JSON_HEADERS, Live, live_service, request
from tests.support.service import test_database_url
from tests.support.waiting import wait_until

CALL = json.dumps(request("eth_chainId"))


@pytest.fixture(scope="module")
def live(module_db: None) -> Iterator[Live]:
    chains.import_blocks("sample", sample.genesis(), sample.raw_blocks()[:2])
    with live_service(workers=2, env={"LOG_LEVEL": "DEBUG"}, may_crash=True) as live:
        yield live


@pytest.fixture(scope="module")
def key(live: Live) -> str:
    return live.new_key()


def paths(key: str) -> list[str]:
    """Return paths that contain a key, in right and wrong places."""
    return [
        f"/v3/{key}",
        f"/sample/v3/{key}",
        f"/v3/{key}/",
        f"/v3/{key}/more",
        f"/v3/{quote(key.replace('_', '%5F'), safe='%')}",
        f"/v3//{key}",
        f"/{key}/v3/",
        f"/v3/ {key}".replace(" ", "%20"),
        f"/v3/x{key}x",
        f"/{key}",
        f"/v2/{key}",
        f"/docs/{key}",
        f"/admin/{key}",
        f"/admin/login/?next=/v3/{key}",
        f"/static/{key}.css",
        f"/v3?key={key}",
        f"/x%0A{key}",
        f"/x%ff{key}",
    ]


def test_no_request_writes_its_key_into_the_log(live: Live, key: str) -> None:
    bearer = {"authorization": f"Bearer {key}"}
    login = base64.b64encode(f":{key}".encode()).decode()
    others = [
        {},
        bearer,
        {"authorization": f"Basic {login}"},
        {"referer": f"{live.base_url}/v3/{key}"},
        {"cookie": f"sessionid={key}"},
        {"host": key},
        {"x-request-id": key, "user-agent": key},
    ]
    bodies = [CALL, "{", f'["{key}"]', json.dumps(request(key, key)), ""]
    with web.Client(base_url=live.base_url) as client:
        for path in paths(key):
            for method in ("POST", "GET", "OPTIONS", "PUT"):
                client.request(method, path, content=CALL, headers=JSON_HEADERS)
            for headers in others:
                client.post(path, content=CALL, headers={**JSON_HEADERS, **headers})
            for body in bodies:
                client.post(path, content=body, headers=JSON_HEADERS)
            client.post(path, content=CALL)
    assert live.log(), "even DEBUG writes nothing: is the right log read?"
    live.check_log()


@pytest.mark.parametrize(
    "sent",
    [
        "POST /v3/{key} HTTP/9.9\r\n\r\n",
        "/v3/{key}\r\n\r\n",
        "POST /v3/{key} HTTP/1.1\r\ncontent-length: x\r\n\r\n",
        "POST /v3/{key} HTTP/1.1\r\nauthorization: Bearer {key}\r\n{key}\r\n\r\n",
        "GET /v3/{key} HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n",
        "GET /v3/{key} HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\n"
        "upgrade: websocket\r\nsec-websocket-version: 13\r\n"
        "sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
        "GET /v3/{key} HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\n"
        "upgrade: websocket\r\nsec-websocket-version: {key}\r\n\r\n",
        "CONNECT {key}:80 HTTP/1.1\r\nhost: x\r\n\r\n",
        "GET http://{key}@x/v3/{key} HTTP/1.1\r\nhost: x\r\n\r\n",
        "\x16\x03\x01{key}",
    ],
)
def test_no_broken_request_writes_its_key_into_the_log(
    live: Live, key: str, sent: str
) -> None:
    address = urlsplit(live.base_url)
    with socket.create_connection((address.hostname, address.port)) as client:
        client.sendall(sent.format(key=key).encode())
        client.settimeout(0.3)
        try:
            while client.recv(65536):
                pass
        except (TimeoutError, ConnectionError):
            pass
    live.check_log()


def test_failing_page_writes_no_key_into_the_log(
    live: Live, key: str, var_dir: Path
) -> None:
    """A failure of a page is logged with its traceback, without data of the request."""
    with (
        psycopg.connect(test_database_url(), autocommit=True) as connection,
        web.Client(base_url=live.base_url) as client,
    ):
        before = live.log()
        connection.execute("ALTER TABLE keys_user RENAME TO keys_user_away")
        try:
            client.get("/admin/login/")
            form = {"username": key, "password": key, "next": f"/v3/{key}"}
            token = {
                "x-csrftoken": client.cookies["csrftoken"],
                "referer": live.base_url,
            }
            crash = client.post(f"/admin/login/?k={key}", data=form, headers=token)
        finally:
            connection.execute("ALTER TABLE keys_user_away RENAME TO keys_user")
        assert crash.status_code == 500
        assert key not in crash.text
        wait_until(lambda: "Traceback" in live.log()[len(before) :])
        written = live.log()[len(before) :]
        assert key[7:-4] not in written
    for log_file in (var_dir / "log").glob("*.log"):  # PostgreSQL's log
        assert key[7:-4] not in log_file.read_text(errors="replace")
    assert not User.objects.filter(email=key).exists()
