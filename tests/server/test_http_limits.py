"""Malformed requests, and the limits of connections, tested with raw bytes on sockets."""

from __future__ import annotations

import time
from contextlib import ExitStack, suppress

import pytest

from server import http, time_limits
from server.bounds import Limits
from server.memory_bounds import ByteLimits
from server.process import Process
from server.reading import MAX_HEADER_BYTES, MAX_HEADERS
from tests.support.applications import Answering
from tests.support.served import Served, bodies, read_all, request, served
from tests.support.waiting import wait_until

START = b"POST /node/echo HTTP/1.1\r\nhost: x\r\n"
PAGE = b"GET /page HTTP/1.1\r\nhost: x\r\n\r\n"


@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x03\x01\x02\x00\x01",  # TLS
        b"GET / HTTP/2.0\r\n\r\n",
        b"POST /node/echo HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
        b"POST /node/echo HTTP/1.1\r\nhost: x\r\nbad header\r\n\r\n",
    ],
)
def test_malformed_bytes_are_refused(connect: Served, data: bytes) -> None:
    for first in (b"", request("/node/size/3")):
        with connect() as client:
            client.sendall(first)
            if first:
                assert bodies(client, 1) == [b"xxx"]
            client.sendall(data)
            answer = read_all(client)
            assert answer.startswith(b"HTTP/1.1 400 Bad Request\r\n")
            assert answer.endswith(b"Invalid HTTP request received.")


PATHS = ["/node/size/1", "/page"]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "hosts",
    ["", "host: a\r\nhost: a\r\n", "host: a\r\nHost: b\r\n", "host: a/b\r\n"],
)
def test_request_without_a_single_host_is_refused(
    connect: Served, path: str, hosts: str
) -> None:
    with connect() as client:
        client.sendall(f"GET {path} HTTP/1.1\r\n{hosts}\r\n".encode())
        answer = read_all(client)
        assert answer.startswith(b"HTTP/1.1 400 Bad Request\r\n")
        assert answer.endswith(b"needs one Host header with a host.")
    with connect() as client:  # older clients know no Host header
        client.sendall(f"GET {path} HTTP/1.0\r\n\r\n".encode())
        assert b" 200 OK" in read_all(client)


@pytest.mark.parametrize("path", PATHS)
def test_unknown_expectation_is_refused(connect: Served, path: str) -> None:
    for version, status in (("1.1", b"417 Expectation Failed"), ("1.0", b"200 OK")):
        with connect() as client:
            client.sendall(request(path, "expect: tea", body=b"x", version=version))
            answer = read_all(client)
            assert answer.startswith(b"HTTP/1.1 " + status)


def test_refusal_never_stands_for_another_request(connect: Served) -> None:
    with connect() as client:
        client.sendall(PAGE + b"bad\x00request\r\n\r\n")
        answer = read_all(client)
        assert answer.index(b" 200 OK") < answer.index(b" 400 Bad Request")


def test_endless_headers_are_refused(connect: Served) -> None:
    with connect() as client:
        client.sendall(START)
        with suppress(ConnectionError):
            client.sendall(b"x-filler: " + b"f" * 2 * MAX_HEADER_BYTES)
        assert client.recv(1000).startswith(b"HTTP/1.1 431 ")


@pytest.mark.parametrize("end", [b"", b"\r\n", b"\r\n" + PAGE])
def test_too_many_headers_are_refused(connect: Served, end: bytes) -> None:
    with connect() as client:
        client.sendall(START + b"a:\r\n" * (MAX_HEADERS + 1) + end)
        assert read_all(client).startswith(b"HTTP/1.1 431 ")
    with connect() as client:
        client.sendall(START + b"a:\r\n" * (MAX_HEADERS - 1) + b"\r\n")
        assert bodies(client, 1) == [b"0 '127.0.0.1' at once"]


@pytest.mark.parametrize("sent", [b"", b"\r\n", b"POST", START, START + b"x: y\r\n"])
def test_headers_have_to_be_complete_in_time(connect: Served, sent: bytes) -> None:
    with connect() as client:
        client.sendall(sent)
        if sent.strip():
            seen_by = connect.connection()
            wait_until(lambda: connect.bounds.buffered.size == len(sent))
            assert not seen_by.is_answering
        connect.check_limits(time_limits.HEADER_SECONDS - 5)
        connect.check_limits(time_limits.HEADER_SECONDS + 1)
        assert client.recv(1) == b""


def test_second_request_has_to_be_complete_in_time_too(connect: Served) -> None:
    with connect() as client:
        client.sendall(request("/node/size/1"))
        assert bodies(client, 1) == [b"x"]
        connect.check_limits(time_limits.HEADER_SECONDS + 1)
        client.sendall(b"P")
        wait_until(lambda: connect.bounds.buffered.size == 1)
        connect.check_limits(time_limits.HEADER_SECONDS - 5)
        connect.check_limits(time_limits.HEADER_SECONDS + 1)
        assert client.recv(1) == b""


def test_time_for_headers_begins_after_the_response_to_a_page(
    connect: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "HEADER_SECONDS", 1.0)
    with connect() as client:
        client.sendall(PAGE)
        assert bodies(client, 1) == [b"page /page 0"]
        time.sleep(1.1)
        client.sendall(PAGE + PAGE[:9])
        assert bodies(client, 1) == [b"page /page 0"]
        connect.check_limits(0)
        client.sendall(PAGE[9:])
        assert bodies(client, 1) == [b"page /page 0"]


def test_idle_connection_is_closed(connect: Served) -> None:
    with connect() as client:
        client.sendall(request("/node/size/1"))
        assert bodies(client, 1) == [b"x"]
        connect.check_limits(time_limits.KEEP_ALIVE_SECONDS - 5)
        client.sendall(request("/node/size/1"))
        assert bodies(client, 1) == [b"x"]
        connect.check_limits(time_limits.KEEP_ALIVE_SECONDS + 1)
        assert client.recv(1) == b""


def test_idle_connection_of_uvicorn_is_closed(connect: Served) -> None:
    with connect() as client:
        client.sendall(PAGE)
        assert bodies(client, 1) == [b"page /page 0"]
        connect.check_limits(time_limits.KEEP_ALIVE_SECONDS - 5)
        client.sendall(PAGE)
        assert bodies(client, 1) == [b"page /page 0"]
        connect.check_limits(time_limits.KEEP_ALIVE_SECONDS + 1)
        assert client.recv(1) == b""


def test_connection_in_use_is_not_idle(connect: Served) -> None:
    with connect() as client:
        client.sendall(request("/node/never"))
        wait_until(lambda: connect.connection().is_answering)
        connect.check_limits(10 * time_limits.KEEP_ALIVE_SECONDS)
        assert connect.connection().is_answering


def test_error_in_one_connection_does_not_prevent_the_limits_of_another(
    connect: Served,
) -> None:
    def fail(now: float) -> None:
        raise RuntimeError("no check today")

    with connect() as faulty:
        first = connect.connection()
        first.check_limits = fail
        with connect() as idle:
            wait_until(lambda: len(connect.process.connections) == 2)
            later = first.loop.time() + time_limits.HEADER_SECONDS + 1
            first.loop.call_soon_threadsafe(connect.process.check_limits, later)
            assert idle.recv(1) == b""
        with suppress(ConnectionResetError):
            assert faulty.recv(1) == b""


def test_limits_are_still_enforced_after_an_error(
    monkeypatch: pytest.MonkeyPatch, application: Answering
) -> None:
    checks: list[float] = []

    def fail(process: Process, now: float) -> None:
        checks.append(now)
        raise RuntimeError("no check today")

    monkeypatch.setattr(Process, "check_limits", fail)
    with served(monkeypatch, application, check_seconds=0.01):
        wait_until(lambda: len(checks) > 1)


def test_incomplete_headers_are_bounded_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limits = Limits(ByteLimits(1_000_000, 1_000_000, 1_000_000))
    application = Answering(limits=limits)
    with served(monkeypatch, application) as connect, ExitStack() as stack:
        bounds = connect.bounds
        clients = [stack.enter_context(connect()) for _ in range(30)]
        for client in clients:
            client.sendall(START + b"x-filler: ")
        wait_until(lambda: bounds.buffered.size >= 30 * len(START))
        for client in clients:
            with suppress(ConnectionError):
                client.sendall(b"f" * 50_000)
        wait_until(lambda: bounds.disconnected["process"] > 10)
        assert bounds.buffered.size <= 1_000_000
        answered = 0
        for client in clients:
            with suppress(ConnectionError):
                client.sendall(b"\r\n\r\n")
                answered += b"200 OK" in client.recv(1000)
        assert 10 <= answered < 20
        wait_until(lambda: bounds.buffered.size == 0)


def test_too_many_connections_of_an_address_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    application = Answering(limits=Limits(per_address=2), trusted_proxies="")
    with served(monkeypatch, application) as connect, ExitStack() as stack:
        for _ in range(2):
            client = stack.enter_context(connect())
            client.sendall(request("/node/size/1"))
            assert bodies(client, 1) == [b"x"]
        with connect() as third:
            assert third.recv(1000).startswith(b"HTTP/1.1 429 ")
        stack.close()
        wait_until(lambda: not connect.process.connections)
        with connect() as client:
            client.sendall(request("/node/size/1"))
            assert bodies(client, 1) == [b"x"]
