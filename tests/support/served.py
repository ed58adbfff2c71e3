"""A worker in this process, spoken to by the byte."""

from __future__ import annotations

import gc
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from config.worker import Worker
from tests.support.waiting import PATIENCE_SECONDS, wait_until


class Served:
    """A worker in a thread, with small answers."""

    def __init__(self, worker: Worker, listener: socket.socket) -> None:
        self._worker = worker
        self._listener = listener

    def __call__(self) -> socket.socket:
        """Return a new connection."""
        address = self._listener.getsockname()
        return socket.create_connection(address, timeout=PATIENCE_SECONDS)

    def connection(self) -> Any:
        """Return the worker's side of the only connection, once it is there."""
        (found,) = wait_until(lambda: self._worker.server_state.connections)
        return found

    def look(self, now: float) -> None:
        """Have the worker look at the connection at a time of ours."""
        connection, looked = self.connection(), threading.Event()

        def look() -> None:
            connection.hang_up_if_late(now)
            looked.set()

        connection.loop.call_soon_threadsafe(look)
        assert looked.wait(PATIENCE_SECONDS)


@contextmanager
def served(
    monkeypatch: pytest.MonkeyPatch, application: str = "sized"
) -> Iterator[Served]:
    """Serve an application of `tests.support.applications`."""
    monkeypatch.setattr(gc, "freeze", lambda: None)  # this process is to go on
    listener = socket.create_server(("127.0.0.1", 0))
    ready, ready_write = os.pipe()
    worker = Worker(f"tests.support.applications:{application}", ready_write)
    thread = threading.Thread(target=worker.run, args=([listener],))
    thread.start()
    try:
        assert os.read(ready, 1) == b"1"
        yield Served(worker, listener)
    finally:
        worker.should_exit = True
        thread.join()
        os.close(ready)
        listener.close()


def request(path: str, *headers: str, version: str = "1.1") -> bytes:
    """Return a request without a body."""
    lines = [f"POST {path} HTTP/{version}", "host: x", "content-length: 0", *headers]
    return "\r\n".join([*lines, "", ""]).encode()


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
