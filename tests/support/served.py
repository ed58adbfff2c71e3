"""A worker in a thread of the test process, and helpers for raw HTTP connections."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from server import worker as workers
from server.bounds import Bounds
from server.process import Process
from server.worker import Worker
from tests.support.waiting import PATIENCE_SECONDS, wait_until


class Served:
    """A worker in a thread."""

    def __init__(self, worker: Worker, listener: socket.socket) -> None:
        self._worker = worker
        self._listener = listener

    def __call__(self) -> socket.socket:
        """Return a new connection."""
        address = self._listener.getsockname()
        return socket.create_connection(address, timeout=PATIENCE_SECONDS)

    @property
    def process(self) -> Process:
        """The worker's state."""
        return self._worker.process

    @property
    def bounds(self) -> Bounds:
        """The worker's limits of its clients."""
        return self.process.bounds

    def connection(self) -> Any:
        """Wait for the only connection, and return the worker's protocol for it."""
        (found,) = wait_until(lambda: self.process.connections)
        return found

    def check_limits(self, seconds: float) -> None:
        """Enforce the time limits as if this number of seconds had passed."""
        connection, checked = self.connection(), threading.Event()

        def check() -> None:
            # Within a millisecond, the loop's time stands still. Without one more, the
            # difference of two times can be a rounding error below `seconds`.
            self.process.check_limits(connection.loop.time() + seconds + 0.001)
            checked.set()

        connection.loop.call_soon_threadsafe(check)
        assert checked.wait(PATIENCE_SECONDS)


class NoCollector:
    """Takes the place of the module `gc`, and does nothing."""

    collect = freeze = enable = staticmethod(lambda: None)


@contextmanager
def served(
    monkeypatch: pytest.MonkeyPatch, application: Any, check_seconds: float = 3600
) -> Iterator[Served]:
    """Serve an application.

    check_seconds: interval at which the worker enforces time limits by itself. By default
        only `Served.check_limits` enforces them.
    """
    # A worker collects garbage when it starts, which takes long among all tests.
    monkeypatch.setattr("server.worker.gc", NoCollector)
    monkeypatch.setattr(workers, "CHECK_SECONDS", check_seconds)
    listener = socket.create_server(("127.0.0.1", 0))
    pulse, pulse_write = os.pipe()
    worker = Worker(application, pulse_write)
    thread = threading.Thread(target=worker.run, args=([listener],))
    thread.start()
    try:
        assert os.read(pulse, 1)
        yield Served(worker, listener)
    finally:
        worker.should_exit = True
        thread.join()
        os.close(pulse)
        listener.close()


def request(path: str, *headers: str, body: bytes = b"", version: str = "1.1") -> bytes:
    """Return a POST with a body of a known length."""
    lines = [f"POST {path} HTTP/{version}", "host: x", f"content-length: {len(body)}"]
    return "\r\n".join([*lines, *headers, "", ""]).encode() + body


def read_answer(client: socket.socket) -> tuple[set[bytes], bytes]:
    """Return status line and headers, without the date, and the body."""
    data = b""
    while b"\r\n\r\n" not in data:
        received = client.recv(2**16)
        assert received, "the connection was closed"
        data += received
    head, _, body = data.partition(b"\r\n\r\n")
    lines = {line for line in head.split(b"\r\n") if not line.startswith(b"date: ")}
    length = next(
        int(line[16:]) for line in lines if line.startswith(b"content-length")
    )
    while len(body) < length:
        received = client.recv(min(2**16, length - len(body)))
        assert received, "the connection was closed"
        body += received
    return lines, body


def bodies(client: socket.socket, count: int) -> list[bytes]:
    """Return the bodies of the next responses."""
    buffer = client.makefile("rb")
    found = []
    for _ in range(count):
        length = None
        while (line := buffer.readline()) not in (b"\r\n", b""):
            if line.startswith(b"content-length"):
                length = int(line[15:])
        assert length is not None, "the connection was closed"
        found.append(buffer.read(length))
    return found


def read_all(client: socket.socket) -> bytes:
    """Return what arrives until the connection is closed."""
    data = b""
    while received := client.recv(2**16):
        data += received
    return data
