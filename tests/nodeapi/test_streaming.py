"""Long responses over real connections, to various readers."""

from __future__ import annotations

import json
import os
import re
import selectors
import signal
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx
import psutil
import pytest

from server import supervisor
from server.supervisor import Server
from tests.support import web
from tests.support.live import Api, request
from tests.support.waiting import PATIENCE_SECONDS, wait_until

MEBIBYTE = 2**20
APPLICATION = "tests.support.long_answers:application"
LONG = 20 * MEBIBYTE
LONGER = 100_000_000
READERS = 50
READER_BYTES_PER_SECOND = 1024


def running() -> Server:
    return Server(supervisor.listen("127.0.0.1", 0, 1), os.environ, APPLICATION)


@pytest.fixture(scope="module")
def service() -> Iterator[Server]:
    with running() as service:
        yield service


@pytest.fixture
def api(service: Server) -> Iterator[Api]:
    with Api(service.base_url, "/v3/good", **{"accept-encoding": "identity"}) as api:
        yield api


def whole(size: int) -> bytes:
    """Return the result of the method `long`."""
    digits = (b"0123456789abcdef" * (size // 16 + 1))[: size - 2]
    return b'{"jsonrpc":"2.0","id":1,"result":"' + digits + b'"}'


def ask(
    service: Server, method: str, *params: int, version: str = "1.1", header: str = ""
) -> socket.socket:
    """Send a call on a connection with a small receive buffer."""
    body = json.dumps(request(method, *params))
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.settimeout(PATIENCE_SECONDS)
    client.connect(service.listeners[0].getsockname())
    client.sendall(
        f"POST /v3/good HTTP/{version}\r\nhost: x\r\ncontent-type: application/json\r\n"
        f"content-length: {len(body)}\r\n{header}\r\n{body}".encode()
    )
    return client


def read_all(client: socket.socket) -> bytes:
    """Return all that is received until the connection is closed."""
    parts = []
    while part := client.recv(MEBIBYTE):
        parts.append(part)
    return b"".join(parts)


def wait_for_none_open(api: Api) -> None:
    wait_until(lambda: api.result("openStreams") == 0)


def test_long_answer_arrives_whole_with_its_length(api: Api) -> None:
    response = api.send(request("long", LONG))
    assert response.content == whole(LONG)
    assert response.headers["content-length"] == str(len(whole(LONG)))
    assert response.headers["content-type"] == "application/json"
    assert response.headers["access-control-allow-origin"] == "*"
    assert "x-request-id" in response.headers
    wait_for_none_open(api)


_DIFFER = ("date", "content-length")


def test_short_answer_to_a_page_has_the_headers_of_an_error(api: Api) -> None:
    """A short response is sent in one write, and an error is not."""
    asked = {"origin": "https://page.example", "x-request-id": "a-1"}
    answers = [api.send(request(name), **asked) for name in ("openStreams", "nothing")]
    assert "error" not in answers[0].json()
    found, refused = (
        sorted(item for item in answer.headers.multi_items() if item[0] not in _DIFFER)
        for answer in answers
    )
    assert found == refused
    assert ("access-control-allow-origin", "*") in found
    assert ("x-request-id", "a-1") in found


def test_long_answer_is_compressed_where_that_is_accepted(api: Api) -> None:
    response = api.send(request("long", LONG), **{"accept-encoding": "gzip"})
    assert response.content == whole(LONG)
    assert response.headers["content-encoding"] == "gzip"
    assert response.headers["vary"] == "accept-encoding"
    assert response.headers["transfer-encoding"] == "chunked"


def test_old_client_is_sent_no_chunks(service: Server) -> None:
    header = "accept-encoding: gzip\r\n"
    with ask(service, "long", LONG, version="1.0", header=header) as client:
        head, _, body = read_all(client).partition(b"\r\n\r\n")
    assert b"transfer-encoding" not in head
    assert body == whole(LONG)


def test_streams_of_a_batch_are_one_body(api: Api) -> None:
    batch = [{**request("long", size), "id": size} for size in (10, 10**6, 3 * 10**7)]
    small, large, too_large = api.send(batch).json()
    assert len(small["result"]) + 2 == 10
    assert len(large["result"]) + 2 == 10**6
    assert too_large["error"]["data"]["reason"] == "response_too_large"


@pytest.mark.parametrize("encoding", ["identity", "gzip"])
def test_answer_that_breaks_is_a_broken_transfer(
    service: Server, encoding: str
) -> None:
    call = request("broken", LONG, LONG // 2)
    headers = {"content-type": "application/json", "accept-encoding": encoding}
    with pytest.raises(httpx.RemoteProtocolError):
        web.post(f"{service.base_url}/v3/good", json=call, headers=headers)


def test_what_came_of_a_broken_answer_is_no_json(service: Server) -> None:
    with ask(service, "broken", LONG, LONG // 2) as client:
        head, _, body = read_all(client).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK")
    assert whole(LONG).startswith(body)
    assert MEBIBYTE < len(body) < len(whole(LONG))


def test_killed_worker_breaks_the_transfer_off() -> None:
    with running() as service, ask(service, "long", LONGER) as client:
        received = client.recv(MEBIBYTE)
        os.kill(service.pids[0], signal.SIGKILL)
        try:
            while part := client.recv(MEBIBYTE):
                received += part
        except ConnectionResetError:
            pass
    length = re.search(rb"content-length: (\d+)", received)
    assert length is not None
    body = received.partition(b"\r\n\r\n")[2]
    assert whole(LONGER).startswith(body)
    assert len(body) < int(length[1])


@pytest.mark.parametrize("method", [("long", LONGER), ("hang",)])
def test_answer_for_a_client_that_has_left_is_given_up(
    service: Server, api: Api, method: tuple[Any, ...]
) -> None:
    clients = [ask(service, *method) for _ in range(20)]
    wait_until(lambda: api.result("openStreams") == len(clients))
    for client in clients:
        client.close()
    wait_for_none_open(api)


def test_slow_readers_use_little_memory_and_delay_no_others(
    service: Server, api: Api
) -> None:
    process = psutil.Process(service.pids[0])
    before = process.memory_info().rss
    clients = [ask(service, "long", LONGER) for _ in range(READERS)]
    poll = selectors.DefaultSelector()
    for client in clients:
        poll.register(client, selectors.EVENT_READ)
    most = before
    for _ in range(8):
        started = time.monotonic()
        for client in clients:
            assert client.recv(READER_BYTES_PER_SECOND)
        assert api.result("openStreams") == READERS
        most = max(most, process.memory_info().rss)
        time.sleep(max(0.0, started + 1 - time.monotonic()))
    for client in clients:
        client.close()
    assert most - before < 64 * MEBIBYTE
    wait_for_none_open(api)


@pytest.mark.parametrize("encoding", ["identity", "gzip"])
def test_quick_reader_does_not_keep_others_waiting(
    service: Server, api: Api, encoding: str
) -> None:
    def read() -> None:
        response = api.send(request("long", LONGER), **{"accept-encoding": encoding})
        assert len(response.content) > LONGER

    answers = 0
    reader = threading.Thread(target=read)
    reader.start()
    with Api(service.base_url, "/v3/good") as other:
        while reader.is_alive():
            other.result("openStreams")
            answers += 1
    assert answers > 5  # during the response, not after it


def test_client_that_takes_nothing_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STALL_SECONDS", "1")
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "192.0.2.1")  # a proxy may stall
    with (
        running() as service,
        Api(service.base_url, "/v3/good") as api,
        ask(service, "long", LONGER) as client,
    ):
        client.recv(1000)
        wait_for_none_open(api)
