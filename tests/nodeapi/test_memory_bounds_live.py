"""Floods of unread responses, unfinished bodies and connections, against a real worker."""

from __future__ import annotations

import json
import re
import select
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import psutil
import pytest

from tests.support import copies, web
from tests.support.live import Live, live_service, request
from tests.support.raw_http import read_response
from tests.support.waiting import PATIENCE_SECONDS, wait_until

MEBIBYTE = 2**20
HERE, ELSEWHERE = "127.0.0.5", "127.0.0.6"
"""Addresses of clients, which are not proxies. On Linux, all of 127.0.0.0/8 is this machine."""


@pytest.fixture(scope="module")
def database(module_db: None) -> None:
    copies.sample_chain()


@pytest.fixture(scope="module")
def live(database: None) -> Iterator[Live]:
    with live_service(with_metrics=True) as live:
        yield live


@pytest.fixture(scope="module")
def batch(live: Live) -> bytes:
    """Return a batch whose response has 25 MB, which the worker has in its cache."""
    with live.api() as api:
        sizes = [
            (len(api.send(request("eth_getBlockByNumber", hex(n), True)).content), n)
            for n in range(101)
        ]
        number = max(sizes)[1]
        calls = [request("eth_getBlockByNumber", hex(number), True)] * 1000
        assert len(api.send(calls).content) > 25_000_000
    return json.dumps(calls).encode()


def connect(live: Live, source: str = HERE, receive_bytes: int = 0) -> socket.socket:
    client = socket.socket()
    if receive_bytes:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    client.settimeout(PATIENCE_SECONDS)
    client.bind((source, 0))
    client.connect(live.server.listeners[0].getsockname())
    return client


def head_of(key: str, length: int, **headers: str) -> bytes:
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return (
        f"POST /v3/{key} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
        f"content-length: {length}\r\n{lines}\r\n"
    ).encode()


def receive(client: socket.socket) -> bytes:
    """Return all that is received until the connection is closed or reset."""
    received = b""
    try:
        while part := client.recv(2**20):
            received += part
    except ConnectionError:
        pass
    return received


def read_json(client: socket.socket) -> tuple[int, Any]:
    """Return status and JSON of one response."""
    status, body = read_response(client)
    return status, json.loads(body)


def reason(answer: Any) -> str:
    return str(answer["error"]["data"]["reason"])


def metric(live: Live, line: str) -> float:
    """Return the value of a metric of the only worker."""
    port = live.server.inner[0].getsockname()[1]
    text = web.get(f"http://127.0.0.1:{port}/metrics").text
    found = re.search(rf"^{re.escape(line)} (\S+)$", text, re.M)
    assert found is not None, text
    return float(found[1])


@contextmanager
def watched(live: Live) -> Iterator[list[int]]:
    """Make calls as another customer, and yield samples of the worker's memory."""
    process = psutil.Process(live.server.pids[0])
    resident = [process.memory_info().rss]
    answers: list[Any] = []
    is_over = threading.Event()
    key = live.new_key()

    def ask() -> None:
        with live.api(key=key) as other:
            while not is_over.wait(0.005):
                answers.append(other.result("eth_chainId"))
                resident.append(process.memory_info().rss)

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        wait_until(lambda: answers)
        yield resident
    finally:
        is_over.set()
        thread.join(PATIENCE_SECONDS)
    assert not thread.is_alive()
    assert set(answers) == {"0x31773"}


def growth(resident: list[int]) -> int:
    return max(resident) - resident[0]


def test_unread_responses_of_a_key_are_bounded(live: Live, batch: bytes) -> None:
    key = live.new_key()
    call = head_of(key, len(batch)) + batch
    with watched(live) as resident, ExitStack() as stack:
        clients = [stack.enter_context(connect(live)) for _ in range(25)]
        for client in clients:
            client.sendall(call)
            client.recv(1)  # so that its response is in memory
        ended = [len(receive(client)) < 25_000_000 for client in clients[:-4]]
    assert all(ended)
    # 64 MiB, and the memory for building one response.
    assert growth(resident) < 200 * MEBIBYTE
    assert metric(live, 'disconnected_clients_total{limit="key"}') >= 21


def test_responses_that_wait_to_be_compressed_are_bounded(
    live: Live, batch: bytes
) -> None:
    key = live.new_key()
    gzip = {"accept-encoding": "gzip"}
    call = head_of(key, len(batch), **gzip) + batch
    with watched(live) as resident, ExitStack() as stack:
        clients = [stack.enter_context(connect(live)) for _ in range(16)]
        for client in clients:
            client.sendall(call)
        for client in clients:
            client.recv(1)
    assert growth(resident) < 300 * MEBIBYTE


def test_reader_that_makes_progress_outlives_a_flood(live: Live, batch: bytes) -> None:
    key = live.new_key()
    call = head_of(key, len(batch)) + batch
    with ExitStack() as stack:
        reader = stack.enter_context(connect(live))
        reader.sendall(call)
        received = 0
        for number in range(120):
            # Before, it was the only client for two seconds.
            if number >= 80 and number % 2:
                stack.enter_context(connect(live)).sendall(call)
            received += len(reader.recv(2**16))
            time.sleep(0.03)
        while received < 25_000_000:
            part = reader.recv(2**20)
            assert part, received
            received += len(part)


def test_pipelined_request_begins_when_the_last_response_was_read(
    live: Live, batch: bytes
) -> None:
    call = head_of(live.new_key(), len(batch)) + batch
    with watched(live) as resident, connect(live) as client:
        client.sendall(call * 3)
        wait_until(lambda: metric(live, "buffered_bytes") > 0)
        count = len(resident)
        wait_until(lambda: len(resident) > count + 50)  # others were answered before
        unread = metric(live, "buffered_bytes")
        assert unread < 30_000_000
        for _ in range(3):
            status, answers = read_first(client)
            assert (status, len(answers)) == (200, 1000)
    assert growth(resident) < 150 * MEBIBYTE
    wait_until(lambda: metric(live, "buffered_bytes") == 0)


def read_first(client: socket.socket) -> tuple[int, Any]:
    """Return the next of several responses."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += client.recv(1)
    found = re.search(rb"content-length: (\d+)", head, re.I)
    assert found is not None, head
    left, body = int(found[1]), b""
    while left > len(body):
        body += client.recv(min(2**20, left - len(body)))
    return int(head.split()[1]), json.loads(body)


def test_unfinished_bodies_of_a_key_are_bounded(live: Live) -> None:
    key = live.new_key()
    size = 5 * MEBIBYTE
    with watched(live) as resident, ExitStack() as stack:
        clients = [stack.enter_context(connect(live)) for _ in range(50)]
        for client in clients:
            try:
                client.sendall(head_of(key, size) + b" " * (size - 10))
            except ConnectionError:
                continue
        refused = [client for client in clients if has_answer(client)]
        answers = [read_json(client) for client in refused]
        assert len(answers) >= 35
        assert {status for status, _ in answers} == {429}
        assert {reason(answer) for _, answer in answers} == {"too_many_buffered_bytes"}
        for client in refused:
            assert receive(client) == b""
    assert growth(resident) < 120 * MEBIBYTE
    wait_until(lambda: metric(live, "buffered_bytes") == 0)


def has_answer(client: socket.socket) -> bool:
    client.settimeout(0.1)
    try:
        return client.recv(1, socket.MSG_PEEK) != b""
    except TimeoutError:
        return False
    finally:
        client.settimeout(PATIENCE_SECONDS)


def test_bodies_of_all_keys_are_bounded_together(database: None) -> None:
    env = {"BUFFER_BYTES": "20000000", "BUFFER_BYTES_PER_ADDRESS": "20000000"}
    with live_service(env=env) as live, ExitStack() as stack:
        answers = []
        for _ in range(8):
            client = stack.enter_context(connect(live))
            client.sendall(head_of(live.new_key(), 4_000_000) + b" " * 3_900_000)
            answers.append(client)
        refused = [read_json(client) for client in answers if has_answer(client)]
        assert {(status, reason(answer)) for status, answer in refused} <= {
            (503, "buffers_full"),
            (429, "too_many_buffered_bytes"),
        }
        assert len(refused) >= 3


@pytest.mark.parametrize("key", ["nk_x", ""])
def test_body_with_an_unknown_key_is_not_buffered(live: Live, key: str) -> None:
    with connect(live) as client:
        client.sendall(head_of(key, 5 * MEBIBYTE) + b" " * 100_000)
        assert read_json(client)[0] == 401
        client.sendall(b" " * 4 * MEBIBYTE)
        assert metric(live, "buffered_bytes") == 0


def test_connections_of_an_address_are_limited(database: None) -> None:
    with live_service(env={"CONNECTIONS_PER_ADDRESS": "5"}) as live:
        with ExitStack() as stack:
            clients = [stack.enter_context(connect(live)) for _ in range(5)]
            with connect(live) as refused:
                status, answer = read_json(refused)
                assert (status, reason(answer)) == (429, "too_many_connections")
                assert receive(refused) == b""
            with connect(live, ELSEWHERE) as other:
                assert ask(live, other) == 200
            assert ask(live, clients[0]) == 200
        wait_until(lambda: is_let_in(live))


def ask(live: Live, client: socket.socket, key: str = "", **headers: str) -> int:
    body = json.dumps(request("eth_chainId")).encode()
    key = key or live.new_key()
    client.sendall(head_of(key, len(body), **headers) + body)
    status, answer = read_json(client)
    if status != 200:
        assert reason(answer) == "too_many_connections"
        assert receive(client) == b""
    return status


def is_let_in(live: Live) -> bool:
    with connect(live) as client:
        return not has_answer(client)


@pytest.mark.parametrize("limit", ["KEY", "ADDRESS"])
def test_connections_through_a_proxy_are_counted_for_its_clients(
    database: None, limit: str
) -> None:
    with live_service(env={f"CONNECTIONS_PER_{limit}": "5"}) as live:
        same, other = live.new_key(), live.new_key()
        given = {"X-Forwarded-For": "192.0.2.1"}
        another = {"X-Forwarded-For": "192.0.2.2"}
        with ExitStack() as stack:
            clients = [
                stack.enter_context(connect(live, "127.0.0.1")) for _ in range(7)
            ]
            for client in clients[:5]:
                assert ask(live, client, same, **given) == 200
            assert ask(live, clients[5], same, **given) == 429
            if limit == "KEY":
                assert ask(live, clients[6], same, **another) == 429
                assert ask(live, clients[0], other, **given) == 200
            else:
                assert ask(live, clients[6], other, **given) == 429
                assert ask(live, clients[0], same, **another) == 200
            # A connection counts for the client that uses it now.
            with connect(live, "127.0.0.1") as client:
                assert ask(live, client, same, **given) == 200


def test_slow_reader_is_served_and_one_that_reads_nothing_is_disconnected(
    batch: bytes,
) -> None:
    """If the kernel passes 64 KiB to a slow reader at once, this happens every 1.6 s.

    TCP_USER_TIMEOUT of as many seconds resets both clients.
    """
    with (
        live_service(env={"STALL_SECONDS": "5"}) as live,
        connect(live) as slow,
        connect(live) as idle,
    ):
        for client in (slow, idle):
            client.sendall(head_of(live.new_key(), len(batch)) + batch)
        slow.recv(1)
        began = time.monotonic()
        ended_after = 0.0
        reset = select.poll()
        reset.register(idle, 0)  # only errors are always reported
        while time.monotonic() - began < 16:
            assert slow.recv(4000)
            if not ended_after and reset.poll(0):
                ended_after = time.monotonic() - began
            time.sleep(0.1)
        assert 4 <= ended_after < 14
