from __future__ import annotations

import gc
import socket
import struct
import time
from collections.abc import Iterator

import pytest
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from config import plain_answers, protocol
from tests.support.served import Served, read_answer, request, served
from tests.support.waiting import wait_until

HEAD = b"GET / HTTP/1.1\r\nhost: x\r\n"


@pytest.fixture
def connect(monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """Return what connects to a worker that is soon tired of waiting."""
    monkeypatch.setattr(protocol, "HEAD_SECONDS", 0.3)
    monkeypatch.setattr(protocol, "LOOK_SECONDS", 0.02)
    with served(monkeypatch) as connect:
        yield connect


@pytest.fixture
def connect_unwatched(monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """Return the same for a worker that looks at its connections when told to."""
    monkeypatch.setattr(protocol, "LOOK_SECONDS", 3600)
    with served(monkeypatch) as connect:
        yield connect


def drip(client: socket.socket, piece: bytes) -> None:
    """Send a piece over and over until the server hangs up."""

    def is_over() -> bool:
        try:
            client.sendall(piece)
            return client.recv(1000) == b""
        except TimeoutError:
            return False
        except ConnectionError:
            return True

    client.settimeout(0.05)
    wait_until(is_over)


@pytest.mark.parametrize(
    ("first", "more"),
    [(b"", b""), (b"\r\n", b"\r\n"), (b"GET /", b"x"), (HEAD, b"x")],
)
def test_head_that_drips_is_given_up(
    connect: Served, first: bytes, more: bytes
) -> None:
    start = time.monotonic()
    with connect() as client:
        client.sendall(first)
        drip(client, more)
    assert time.monotonic() - start > protocol.HEAD_SECONDS


def test_second_head_that_drips_is_given_up_too(
    connect: Served,
) -> None:
    with connect() as client:
        client.sendall(HEAD + b"\r\n")
        assert b"200 OK" in client.recv(1000)
        start = time.monotonic()
        client.sendall(b"G")
        drip(client, b"")
    assert time.monotonic() - start > protocol.HEAD_SECONDS


def test_slow_but_steady_client_is_answered(connect_unwatched: Served) -> None:
    now = 0.0
    with connect_unwatched() as client:
        for _ in range(4):
            for piece in (HEAD[:9], HEAD[9:], b"\r\n"):
                client.sendall(piece)
                connect_unwatched.look(now)
                now += 0.4 * protocol.HEAD_SECONDS
            assert b"200 OK" in client.recv(1000)
            connect_unwatched.look(now)
        now += 3 * protocol.HEAD_SECONDS  # at rest, which has a limit of its own
        connect_unwatched.look(now)
        client.sendall(HEAD + b"\r\n")
        assert b"200 OK" in client.recv(1000)


def test_endless_head_is_refused(connect: Served) -> None:
    line = b"x-filler: " + b"f" * 1000 + b"\r\n"
    sent = len(HEAD)
    with connect() as client:
        client.sendall(HEAD)
        with pytest.raises(ConnectionError):
            while sent < 50 * protocol.MAX_HEAD_BYTES:
                client.sendall(line)
                sent += len(line)
    # The kernel's buffers hold some more than the server has read.
    assert sent < 50 * protocol.MAX_HEAD_BYTES


def test_refusal_of_an_endless_head_has_its_status(connect_unwatched: Served) -> None:
    filler = b"x-filler: " + b"f" * 40_000 + b"\r\n"
    with connect_unwatched() as client:
        seen_by = connect_unwatched.connection()
        client.sendall(HEAD)
        wait_until(lambda: seen_by._unfinished_bytes > 0)
        client.sendall(filler)
        wait_until(lambda: seen_by._unfinished_bytes > len(filler))
        client.sendall(filler)
        assert client.recv(1000).startswith(b"HTTP/1.1 431 ")
        assert client.recv(1000) == b""


def test_large_head_that_ends_is_answered(
    connect: Served,
) -> None:
    with connect() as client:
        client.sendall(HEAD + b"x-filler: " + b"f" * 40_000)
        time.sleep(0.05)
        client.sendall(b"\r\n\r\n")
        assert b"200 OK" in client.recv(1000)


@pytest.mark.parametrize("size", [1, 1800, plain_answers._COPIED_BYTES + 1, 3_000_000])
def test_plain_answer_is_what_messages_make_of_it(connect: Served, size: int) -> None:
    with connect() as client:
        answers = []
        for path in (f"/sent/{size}", f"/plain/{size}", f"/plain/{size}"):
            client.sendall(request(path))
            answers.append(read_answer(client))
    assert answers[0] == answers[1] == answers[2]
    assert answers[0][1] == b"x" * size


def test_plain_answers_to_a_reader_who_takes_his_time_come_whole(
    connect: Served,
) -> None:
    with connect() as client:
        client.sendall(request("/plain/2000000") * 10)
        time.sleep(0.2)  # more than the socket takes
        bodies = [read_answer(client)[1] for _ in range(10)]
    assert bodies == [b"x" * 2_000_000] * 10


@pytest.mark.parametrize(
    "asking",
    [request("/plain/10", "connection: close"), request("/plain/10", version="1.0")],
)
def test_plain_answer_on_a_connection_that_ends_ends_it(
    connect: Served, asking: bytes
) -> None:
    with connect() as client:
        client.sendall(asking)
        lines, body = read_answer(client)
        assert b"connection: close" in lines
        assert body == b"x" * 10
        assert client.recv(1) == b""


def test_plain_answer_tells_the_time(connect: Served) -> None:
    def told() -> bytes:
        client.sendall(request("/plain/1"))
        data = client.recv(1000)
        return data[data.index(b"date: ") :].split(b"\r\n")[0]

    with connect() as client:
        first = told()
        wait_until(lambda: told() != first)


@pytest.mark.parametrize("is_reset", [False, True])
def test_connections_are_gone_when_they_are_over(
    connect_unwatched: Served, is_reset: bool
) -> None:
    def left() -> int:
        gc.collect()
        return sum(type(one) is protocol.Protocol for one in gc.get_objects())

    before = left()
    for _ in range(5):
        with connect_unwatched() as client:
            client.sendall(request("/plain/1"))
            read_answer(client)
            if is_reset:
                # To close at once, without the end that a peer would read.
                lingers = struct.pack("ii", 1, 0)
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, lingers)
    wait_until(lambda: left() <= before)


@pytest.mark.parametrize("kind", ["plain", "sent"])
def test_answered_requests_are_gone_without_the_garbage_collector(
    connect_unwatched: Served, kind: str
) -> None:
    def left() -> int:
        # By its type: a proxy of something that has gone can't be asked for its class.
        return sum(type(one) is RequestResponseCycle for one in gc.get_objects())

    gc.collect()  # what other tests have left
    gc.disable()
    try:
        before = left()
        with connect_unwatched() as client:
            for _ in range(20):
                client.sendall(request(f"/{kind}/1"))
                read_answer(client)
            # The connection remembers its last one, and may not be done with it.
            wait_until(lambda: left() <= before + 1)
    finally:
        gc.enable()
