from __future__ import annotations

import gc
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from config import protocol
from config.worker import Worker

HEAD = b"GET / HTTP/1.1\r\nhost: x\r\n"


@pytest.fixture
def connect(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], socket.socket]]:
    """Return what connects to a worker, in a thread, with small answers."""
    monkeypatch.setattr(protocol, "HEAD_SECONDS", 0.3)
    monkeypatch.setattr(protocol, "LOOK_SECONDS", 0.02)
    monkeypatch.setattr(gc, "freeze", lambda: None)  # this process is to go on
    listener = socket.create_server(("127.0.0.1", 0))
    ready, ready_write = os.pipe()
    worker = Worker("tests.support.applications:sized", ready_write)
    thread = threading.Thread(target=worker.run, args=([listener],))
    thread.start()
    try:
        assert os.read(ready, 1) == b"1"
        yield lambda: socket.create_connection(listener.getsockname(), timeout=5)
    finally:
        worker.should_exit = True
        thread.join()
        os.close(ready)
        listener.close()


def drip(client: socket.socket, pieces: list[bytes]) -> float:
    """Send pieces until the server hangs up; returns the seconds that took."""
    start = time.monotonic()
    client.settimeout(0.05)
    for piece in pieces:
        try:
            client.sendall(piece)
            if client.recv(1000) == b"":
                return time.monotonic() - start
        except TimeoutError:
            continue
        except ConnectionError:
            return time.monotonic() - start
    raise AssertionError("the server goes on listening")


@pytest.mark.parametrize(
    ("first", "more"),
    [(b"", b""), (b"\r\n", b"\r\n"), (b"GET /", b"x"), (HEAD, b"x")],
)
def test_head_that_drips_is_given_up(
    connect: Callable[[], socket.socket], first: bytes, more: bytes
) -> None:
    with connect() as client:
        client.sendall(first)
        assert 0.25 < drip(client, [more] * 60) < 1.5


def test_second_head_that_drips_is_given_up_too(
    connect: Callable[[], socket.socket],
) -> None:
    with connect() as client:
        client.sendall(HEAD + b"\r\n")
        assert b"200 OK" in client.recv(1000)
        assert 0.25 < drip(client, [b"G", *[b""] * 60]) < 1.0


def test_slow_but_steady_client_is_answered(
    connect: Callable[[], socket.socket],
) -> None:
    with connect() as client:
        for _ in range(4):
            for piece in (HEAD[:9], HEAD[9:], b"\r\n"):
                client.sendall(piece)
                time.sleep(0.06)
            assert b"200 OK" in client.recv(1000)
        time.sleep(0.5)  # at rest, which has a limit of its own
        client.sendall(HEAD + b"\r\n")
        assert b"200 OK" in client.recv(1000)


def test_endless_head_is_refused(connect: Callable[[], socket.socket]) -> None:
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


def test_refusal_of_an_endless_head_has_its_status(
    connect: Callable[[], socket.socket],
) -> None:
    with connect() as client:
        client.sendall(HEAD)
        time.sleep(0.05)
        for _ in range(2):
            client.sendall(b"x-filler: " + b"f" * 40_000 + b"\r\n")
            time.sleep(0.05)
        assert client.recv(1000).startswith(b"HTTP/1.1 431 ")
        assert client.recv(1000) == b""


def test_large_head_that_ends_is_answered(
    connect: Callable[[], socket.socket],
) -> None:
    with connect() as client:
        client.sendall(HEAD + b"x-filler: " + b"f" * 40_000)
        time.sleep(0.05)
        client.sendall(b"\r\n\r\n")
        assert b"200 OK" in client.recv(1000)


def request(path: str, *headers: str, version: str = "1.1") -> bytes:
    lines = [f"POST {path} HTTP/{version}", "host: x", "content-length: 0", *headers]
    return "\r\n".join([*lines, "", ""]).encode()


def read_answer(client: socket.socket) -> tuple[set[bytes], bytes]:
    """Return status line and headers, without the date, and the body."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += client.recv(2**16)
    head, _, body = data.partition(b"\r\n\r\n")
    lines = {line for line in head.split(b"\r\n") if not line.startswith(b"date: ")}
    length = next(
        int(line[16:]) for line in lines if line.startswith(b"content-length")
    )
    while len(body) < length:
        body += client.recv(min(2**16, length - len(body)))
    return lines, body


@pytest.mark.parametrize("size", [1, 1800, protocol._COPIED_BYTES + 1, 3_000_000])
def test_plain_answer_is_what_messages_make_of_it(
    connect: Callable[[], socket.socket], size: int
) -> None:
    with connect() as client:
        answers = []
        for path in (f"/sent/{size}", f"/plain/{size}", f"/plain/{size}"):
            client.sendall(request(path))
            answers.append(read_answer(client))
    assert answers[0] == answers[1] == answers[2]
    assert answers[0][1] == b"x" * size


def test_plain_answers_to_a_reader_who_takes_his_time_come_whole(
    connect: Callable[[], socket.socket],
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
    connect: Callable[[], socket.socket], asking: bytes
) -> None:
    with connect() as client:
        client.sendall(asking)
        lines, body = read_answer(client)
        assert b"connection: close" in lines
        assert body == b"x" * 10
        assert client.recv(1) == b""


def test_plain_answer_tells_the_time(connect: Callable[[], socket.socket]) -> None:
    seen = set()
    with connect() as client:
        for _ in range(3):
            client.sendall(request("/plain/1"))
            data = client.recv(1000)
            seen.add(data[data.index(b"date: ") :].split(b"\r\n")[0])
            time.sleep(1.1)
    assert len(seen) > 1
