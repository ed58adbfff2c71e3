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
    worker = Worker("tests.support.applications:process_id", ready_write)
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
