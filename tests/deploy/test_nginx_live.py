"""Two services behind a real nginx, with the configuration of a site."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from django.contrib.auth.hashers import PBKDF2PasswordHasher
from websockets.asyncio.client import connect as open_socket
from websockets.exceptions import InvalidStatus

from keys.models import User
from keys.services import set_allowlist
from tests.deploy.nginx import NGINX, SITE, Proxy, nginx
from tests.support import chains, sample, web
from tests.support.coroutines import run
from tests.support.dapps import Owner, orm
from tests.support.live import (
    JSON_HEADERS,
    Live,
    api_key_of,
    live_service,
    request,
)
from tests.support.waiting import until, wait_until
from wallets.models import LiveSocket

pytestmark = pytest.mark.skipif(
    NGINX is None, reason="nginx is not installed (apt-get install nginx)"
)

HERE, ELSEWHERE = "127.0.0.5", "127.0.0.6"
"""Source addresses of clients. On Linux, all of 127.0.0.0/8 is this machine."""

BEHIND_TLS = {
    "HTTPS": "1",
    "ALLOWED_HOSTS": SITE,
    "FORWARDED_ALLOW_IPS": "127.0.0.1",
}

TOO_LONG = 5 * 2**20 + 1
"""Bytes; one more than the default of NODEAPI_MAX_BODY_BYTES."""


@pytest.fixture(scope="module")
def alpha(module_db: None) -> None:
    chains.import_blocks("alpha", sample.genesis(), sample.raw_blocks()[:3])


@pytest.fixture(scope="module")
def services(alpha: None) -> Iterator[list[Live]]:
    with ExitStack() as stack:
        yield [stack.enter_context(live_service(env=BEHIND_TLS)) for _ in range(2)]


@pytest.fixture(scope="module")
def proxy(services: list[Live]) -> Iterator[Proxy]:
    with nginx([live.server.listeners[0].getsockname()[1] for live in services]) as it:
        yield it
        log = it.log()
    assert log
    for live in services:
        for secret in live.secrets:
            assert secret[7:-4] not in log


def client(proxy: Proxy, source: str = HERE, **headers: str) -> httpx.Client:
    """Return a client of the proxy with a source address."""
    transport = httpx.HTTPTransport(verify=proxy.tls, local_address=source)
    return httpx.Client(
        base_url=proxy.url, transport=transport, headers=headers, timeout=60
    )


def ask(http: httpx.Client, key: str, method: str, *params: Any) -> httpx.Response:
    body = json.dumps(request(method, *params))
    return http.post(f"/v3/{key}", content=body, headers=JSON_HEADERS)


def test_calls_reach_both_services(services: list[Live], proxy: Proxy) -> None:
    key = services[0].new_key()
    with client(proxy, origin="https://page.example") as http:
        answers = [ask(http, key, "eth_blockNumber") for _ in range(20)]
        by_network = http.post(
            "/alpha/v3",
            json=request("eth_chainId"),
            headers={"authorization": f"Bearer {key}"},
        )
    assert {answer.json()["result"] for answer in answers} == {"0x3"}
    workers = {answer.headers["x-request-id"].partition("-")[0] for answer in answers}
    assert len(workers) == 2
    assert by_network.json()["result"]


def test_the_address_of_a_client_is_its_own_whatever_it_claims(
    services: list[Live], proxy: Proxy
) -> None:
    key = services[0].new_key()
    api_key = api_key_of(key)
    set_allowlist(api_key=api_key, kind="ip", values=[HERE])
    for claim in ({}, {"X-Forwarded-For": ELSEWHERE}, {"X-Forwarded-For": "garbage,"}):
        with client(proxy, HERE, **claim) as http:
            assert ask(http, key, "eth_chainId").status_code == 200
    for claim in ({}, {"X-Forwarded-For": HERE}, {"Forwarded": f"for={HERE}"}):
        with client(proxy, ELSEWHERE, **claim) as http:
            answer = ask(http, key, "eth_chainId")
        assert answer.status_code == 403
        assert answer.json()["error"]["data"]["reason"] == "ip_not_allowed"


def test_forwarded_headers_of_clients_beside_the_proxy_are_ignored(
    services: list[Live],
) -> None:
    key = services[0].new_key()
    set_allowlist(api_key=api_key_of(key), kind="ip", values=[HERE])
    base_url = services[0].base_url
    claim = {"X-Forwarded-For": HERE}
    for source, status in ((HERE, 200), (ELSEWHERE, 403)):
        transport = httpx.HTTPTransport(local_address=source)
        with httpx.Client(
            base_url=base_url, transport=transport, headers=claim
        ) as http:
            assert ask(http, key, "eth_chainId").status_code == status


def _without_origin(node: dict[str, Any]) -> dict[str, Any]:
    """Return an object with the path of `see` only: nginx has another host name."""
    return {**node, "see": urlsplit(node["see"]).path} if "see" in node else node


def test_long_body_is_refused_as_the_service_does_it(
    services: list[Live], proxy: Proxy
) -> None:
    key = services[0].new_key()
    body = b" " * TOO_LONG
    direct = httpx.post(
        f"{services[0].base_url}/v3/{key}", content=body, headers=JSON_HEADERS
    )
    with client(proxy) as http:
        there = http.post(f"/v3/{key}", content=body, headers=JSON_HEADERS)
        longest = json.dumps(request("eth_chainId")).encode().ljust(TOO_LONG - 1)
        fits = http.post(f"/v3/{key}", content=longest, headers=JSON_HEADERS)
    assert (direct.status_code, there.status_code) == (413, 413)
    ours, nginxs = (
        json.loads(each.text, object_hook=_without_origin) for each in (direct, there)
    )
    assert nginxs == ours
    for name in ("content-type", "cache-control", "access-control-allow-origin"):
        assert there.headers[name] == direct.headers[name]
    assert fits.json()["result"]


def test_unfinished_bodies_are_neither_on_the_disk_nor_kept_by_the_service(
    services: list[Live], proxy: Proxy
) -> None:
    """The bodies have 100 MB. The services buffer at most 2 × 64 MiB, and answer others."""
    key = services[0].new_key()
    body = b" " * 5_000_000
    before = proxy.temporary_bytes()
    with ExitStack() as stack:
        clients = [stack.enter_context(proxy.connect(HERE)) for _ in range(40)]
        answered = 0
        for each in clients:
            with suppress(OSError):  # the response arrived before the end of the body
                each.sendall(head_of(key, len(body) + 1) + body)
            answered += has_begun(each)
        assert proxy.temporary_bytes() == before
        answered += sum(has_begun(each) for each in clients)
        assert answered >= 10
        with client(proxy, ELSEWHERE) as http:
            assert ask(http, services[0].new_key(), "eth_chainId").status_code == 200


def test_long_bodies_reach_the_service(services: list[Live], proxy: Proxy) -> None:
    call = json.dumps(request("eth_chainId")).encode()
    with client(proxy) as http:
        for size in (65_535, 65_536, 200_000):
            for body in (call.ljust(size), iter([call, b" " * (size - len(call))])):
                answer = http.post(
                    f"/v3/{services[0].new_key()}", content=body, headers=JSON_HEADERS
                )
                assert (size, answer.json().get("result")) == (size, "0x31773")


def test_slow_reader_is_served_and_one_that_reads_nothing_is_disconnected(
    alpha: None,
) -> None:
    """With the limits of this test, the reader is as slow as 400 bytes/s in production."""
    env = {**BEHIND_TLS, "STALL_SECONDS": "1"}
    shorter = ("send_timeout 1200s", "send_timeout 4s")
    with live_service(env=env) as live:
        port = live.server.listeners[0].getsockname()[1]
        body, size = large_batch(live)
        with (
            nginx([port], replace=shorter) as proxy,
            proxy.connect(HERE) as slow,
            proxy.connect(HERE) as idle,
        ):
            for connection in (slow, idle):
                connection.sendall(head_of(live.new_key(), len(body)) + body)
            received, began = 0, time.monotonic()
            while time.monotonic() - began < 10:
                received += len(slow.recv(10_000))
                time.sleep(0.1)
            while part := slow.recv(2**20):
                received += len(part)
                if received >= size:
                    break
            assert received >= size
            assert len(read_all(idle)) < size


def large_batch(live: Live) -> tuple[bytes, int]:
    """Return a batch, and the length of its response, which exceeds a proxy's buffers."""
    calls = [request("eth_getBlockByNumber", "latest", True)] * 1000
    body = json.dumps(calls).encode()
    with live.api() as api:
        size = len(api.post(body).content)
    assert size > 15_000_000
    return body, size


def read_all(connection: socket.socket) -> bytes:
    """Return all that is received until the connection is closed or reset."""
    received = b""
    with suppress(OSError):
        while part := connection.recv(2**20):
            received += part
    return received


def test_connections_of_an_address_are_limited(services: list[Live]) -> None:
    ports = [live.server.listeners[0].getsockname()[1] for live in services]
    few = ("limit_conn portcullis_address 1000", "limit_conn portcullis_address 5")
    key = services[0].new_key()
    with nginx(ports, replace=few) as proxy, ExitStack() as stack:
        for _ in range(5):
            waiting = stack.enter_context(proxy.connect(HERE))
            waiting.sendall(head_of(key, 100) + b"{")
        with client(proxy, ELSEWHERE) as http:
            assert ask(http, key, "eth_chainId").status_code == 200

        def is_refused() -> bool:
            with client(proxy, HERE) as http:
                answer = ask(http, key, "eth_chainId")
            if answer.status_code == 200:  # some response headers have not arrived yet
                return False
            assert answer.status_code == 429
            reason = answer.json()["error"]["data"]["reason"]
            assert reason == "too_many_connections"
            return True

        wait_until(is_refused)


def head_of(key: str, length: int) -> bytes:
    return (
        f"POST /v3/{key} HTTP/1.1\r\nhost: {SITE}\r\n"
        f"content-type: application/json\r\ncontent-length: {length}\r\n\r\n"
    ).encode()


def has_begun(connection: socket.socket) -> bool:
    """Return whether a response has begun, or the connection has ended."""
    connection.settimeout(0.05)
    try:
        connection.recv(1)
    except TimeoutError:
        return False
    except OSError:
        return True
    return True


def test_staff_log_in_with_forms_that_only_our_pages_can_send(
    services: list[Live], proxy: Proxy
) -> None:
    user = User.objects.create_superuser("staff@example.org")
    user.password = PBKDF2PasswordHasher().encode("a long password", "salt", 1000)
    user.save()

    def log_in(http: httpx.Client, origin: str) -> httpx.Response:
        page = http.get("/admin/login/")
        (token,) = re.findall(r'csrfmiddlewaretoken" value="(\w+)"', page.text)
        return http.post(
            "/admin/login/?next=/admin/",
            data={
                "csrfmiddlewaretoken": token,
                "username": "staff@example.org",
                "password": "a long password",
            },
            headers={"origin": origin, "referer": f"{origin}/admin/login/"},
        )

    with client(proxy) as http:
        assert log_in(http, "https://evil.example").status_code == 403
        assert log_in(http, proxy.url).status_code == 302
        index = http.get("/admin/")
        assert index.status_code == 200
        assert "strict-transport-security" in index.headers
        assert all(cookie.secure for cookie in http.cookies.jar)
        (style,) = re.findall(r'href="(/static/admin/css/base[^"]*)"', index.text)
        assert http.get(style).status_code == 200


def test_sockets_pass_with_the_address_of_their_client(
    services: list[Live], proxy: Proxy
) -> None:
    owner = Owner(proxy.url)

    async def scenario() -> None:
        async with open_socket(
            owner.url,
            ssl=proxy.tls,
            local_addr=(HERE, 0),
            additional_headers={
                "Authorization": f"Bearer {owner.token}",
                "X-Forwarded-For": ELSEWHERE,
            },
        ) as dapp:
            await dapp.send(json.dumps(request("wallet_getSession")))
            assert json.loads(await dapp.recv())["result"]
            opened = await orm(LiveSocket.objects.get, dapp=owner.dapp)
            assert opened.remote_address == HERE

    assert owner.url.startswith("wss://")
    run(scenario())


def test_node_sockets_pass_and_their_keys_are_not_logged(
    services: list[Live], proxy: Proxy
) -> None:
    key = services[0].new_key()
    set_allowlist(api_key=api_key_of(key), kind="ip", values=[HERE])
    url = proxy.url.replace("https:", "wss:")
    bearer = {"Authorization": f"Bearer {key}"}

    async def scenario() -> None:
        for path, headers in (
            (f"/ws/v3/{key}", {}),
            (f"/alpha/ws/v3/{key}", {"X-Forwarded-For": ELSEWHERE}),
            ("/ws/v3", bearer),
        ):
            async with open_socket(
                url + path,
                ssl=proxy.tls,
                local_addr=(HERE, 0),
                additional_headers=headers,
            ) as node:
                await node.send(json.dumps(request("eth_subscribe", "newHeads")))
                assert json.loads(await node.recv())["result"].startswith("0x")
        with pytest.raises(InvalidStatus) as refused:
            await open_socket(f"{url}/ws/v3/{key[:-1]}", ssl=proxy.tls)
        assert refused.value.response.status_code == 401

    run(scenario())
    for path in (f"/ws/v3/{key}", f"/alpha/ws/v3/{key}"):
        assert web.get(proxy.plain_url + path).status_code == 403
    wait_until(lambda: proxy.log().count("ws/v3") >= 4)
    assert key not in proxy.log()
    assert '"path":"/alpha/ws/v3"' in proxy.log()


def test_nothing_is_answered_without_tls_or_under_another_name(
    services: list[Live], proxy: Proxy
) -> None:
    key = services[0].new_key()
    with httpx.Client(base_url=proxy.plain_url) as http:
        sent = ask(http, key, "eth_chainId")
        page = http.get("/account/login?next=/dashboard/")
        by_address = {"host": "198.51.100.7"}
        with pytest.raises(httpx.RemoteProtocolError):
            http.get("/account/login", headers=by_address)
    assert sent.status_code == 403
    assert "HTTPS only" in sent.json()["error"]["message"]
    assert page.status_code == 301
    assert page.headers["location"] == f"https://{SITE}/account/login?next=/dashboard/"
    with (
        socket.create_connection(("127.0.0.1", proxy.port)) as connection,
        pytest.raises(ssl.SSLError),
    ):
        proxy.tls.wrap_socket(connection, server_hostname="other.example")


def test_what_is_for_operators_is_kept_from_strangers(
    services: list[Live], proxy: Proxy
) -> None:
    with client(proxy) as http:
        for path in ("/livez", "/readyz", "/metrics", "/%72eadyz"):
            assert http.get(path).status_code == 404


def test_the_log_has_no_keys_no_links_of_mails_and_no_questions(
    services: list[Live], proxy: Proxy
) -> None:
    key = services[0].new_key()
    with client(proxy, referer=f"{proxy.url}/v3/{key}") as http:
        for path in (f"/v3/{key}", f"/alpha/v3/{key}", f"/{key}"):
            http.post(path, json=request("eth_chainId"))
        http.get("/account/reset/MQ/c3cr3t-link")
        http.get("/wallet/?code=s3cr3t")
    log = proxy.log()
    assert {'"path":"/v3"', '"path":"/alpha/v3"', '"path":"(other)"'} <= set(
        re.findall(r'"path":"[^"]*"', log)
    )
    assert '"path":"/account"' in log
    for secret in (key, "c3cr3t", "s3cr3t"):
        assert secret not in log
    lines = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
    assert {line["client"] for line in lines} >= {HERE}


def test_no_call_is_lost_while_one_service_after_the_other_is_replaced(
    alpha: None,
) -> None:
    with ExitStack() as first, ExitStack() as second:
        lives = [
            stack.enter_context(live_service(env=BEHIND_TLS))
            for stack in (first, second)
        ]
        key = lives[0].new_key()
        ports = [live.server.listeners[0].getsockname()[1] for live in lives]
        with nginx(ports) as proxy:
            again = live_service(env=BEHIND_TLS, port=ports[0])
            steps = [first.close, lambda: first.enter_context(again), second.close]
            found = asyncio.run(_ask_while(proxy, key, steps))
            with client(proxy) as http:
                assert ask(http, key, "eth_chainId").status_code == 200
                first.close()
                away = ask(http, key, "eth_chainId")
            log = proxy.log()
    assert set(found) == {200}
    assert away.status_code == 503
    assert away.headers["retry-after"] == "1"
    assert away.json()["error"]["code"] == -32603
    assert key[7:-4] not in log


async def _ask_while(proxy: Proxy, key: str, steps: list[Any]) -> list[int]:
    """Return the statuses of calls that are made during some steps."""
    found: list[int] = []
    is_over = False
    body = json.dumps(request("eth_blockNumber"))

    async def ask_on(http: httpx.AsyncClient) -> None:
        while not is_over:
            answer = await http.post(f"/v3/{key}", content=body, headers=JSON_HEADERS)
            found.append(answer.status_code)

    async with httpx.AsyncClient(
        base_url=proxy.url, verify=proxy.tls, timeout=60
    ) as http:
        clients = [asyncio.create_task(ask_on(http)) for _ in range(8)]
        await until(lambda: len(found) > 50)
        for step in steps:
            await asyncio.to_thread(step)
            seen = len(found)
            await until(lambda: len(found) > seen + 50)  # noqa: B023  # waited for
        is_over = True
        await asyncio.gather(*clients)
    return found
