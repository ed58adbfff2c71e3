"""Thousands of WebSocket clients in one process, with as little Python per event as possible.

The process reads commands as lines of JSON on standard input, and answers each with one
line. `Listeners` controls it from the parent process. It parses only the headers of
WebSocket frames, and answers pings.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import struct
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import uvloop

from config import env

CHAIN_ID = 5_152
"""Chain id of the network whose heads are sent. No other part of the benchmark uses it,
because a wallet has one network for each chain id."""

SCOPE = f"eip155:{CHAIN_ID}"

_AT_ONCE = 256
"""Maximum number of concurrent handshakes."""

_TRIES = 20
_PATIENCE_SECONDS = 60
_TEXT, _CLOSE, _PING, _PONG = 1, 8, 9, 10


class SocketsFailed(Exception):
    """Raised when a socket is refused or closed, or does not receive an event."""


@dataclass(frozen=True, slots=True)
class Opening:
    """The address of the sockets to open, with their headers and first frame."""

    port: int
    path: str
    headers: list[str]
    """One for each socket: `Authorization: Bearer …`."""
    first_frame: str | None = None
    """Text frame sent on an open socket. Its answer has to arrive before the socket
    counts as open. None: no frame."""


class _Socket(asyncio.Protocol):
    """One WebSocket, which notes when each text frame arrives."""

    def __init__(self, opening: Opening, header: str, arrivals: list[float]) -> None:
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._opening = opening
        self._header = header
        self._arrivals = arrivals
        self._waiting = b""
        self._is_upgraded = False
        self._answers = 1 if opening.first_frame is not None else 0

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        opening = self._opening
        request = (
            f"GET {opening.path} HTTP/1.1\r\nHost: 127.0.0.1:{opening.port}\r\n"
            "Upgrade: websocket\r\nConnection: Upgrade\r\n"
            "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
            f"Sec-WebSocket-Version: 13\r\n{self._header}\r\n\r\n"
        )
        transport.write(request.encode())

    def data_received(self, data: bytes) -> None:
        now = time.monotonic()
        data = self._waiting + data
        if not self._is_upgraded:
            head, separator, data = data.partition(b"\r\n\r\n")
            if not separator:
                self._waiting = head
                return
            if not head.startswith(b"HTTP/1.1 101"):
                self._fail(head.partition(b"\r\n")[0].decode())
                return
            self._is_upgraded = True
            if self._opening.first_frame is None:
                self.opened.set_result(None)
            else:
                self._send(_TEXT, self._opening.first_frame.encode())
        while len(data) >= 2:
            size, start = data[1], 2
            if size == 126 and len(data) >= 4:
                size, start = struct.unpack_from("!H", data, 2)[0], 4
            elif size == 127 and len(data) >= 10:
                size, start = struct.unpack_from("!Q", data, 2)[0], 10
            elif size >= 126:
                break
            if len(data) < start + size:
                break
            self._take(data[0] & 15, data[start : start + size], now)
            data = data[start + size :]
        self._waiting = data

    def connection_lost(self, error: Exception | None) -> None:
        self._fail(f"lost: {error}")

    def _take(self, opcode: int, payload: bytes, now: float) -> None:
        if opcode == _PING:
            self._send(_PONG, payload)
        elif opcode == _CLOSE:
            self._fail(f"closed: {payload!r}")
        elif self._answers:
            self._answers -= 1
            if b'"result"' not in payload:
                self._fail(payload.decode())
            else:
                self.opened.set_result(None)
        else:
            self._arrivals.append(now)

    def _send(self, opcode: int, payload: bytes) -> None:
        """Send a frame; a mask of zeros leaves it as it is."""
        size = len(payload)
        head = bytes([128 | opcode, 128 | min(size, 126)])
        longer = struct.pack("!H", size) if size >= 126 else b""
        self._transport.write(head + longer + bytes(4) + payload)

    def _fail(self, why: str) -> None:
        if not self.opened.done():
            self.opened.set_exception(SocketsFailed(why))
        elif not self.opened.exception():
            print(f"listeners: {why}", file=sys.stderr, flush=True)
        self._transport.abort()


class _Crowd:
    """All sockets of the process."""

    def __init__(self) -> None:
        self._sockets: list[_Socket] = []
        self._arrivals: list[float] = []

    async def open(self, opening: Opening) -> float:
        """Open sockets, and return the duration in seconds."""
        start = time.monotonic()
        gate = asyncio.Semaphore(_AT_ONCE)

        async def one(header: str) -> None:
            async with gate:
                for turn in range(_TRIES):
                    try:
                        self._sockets.append(await self._connect(opening, header))
                        return
                    except SocketsFailed as error:
                        if "503" not in str(error) or turn == _TRIES - 1:
                            raise
                        await asyncio.sleep(0.1 * turn)

        await asyncio.gather(*map(one, opening.headers))
        return time.monotonic() - start

    async def _connect(self, opening: Opening, header: str) -> _Socket:
        _, socket = await asyncio.get_running_loop().create_connection(
            lambda: _Socket(opening, header, self._arrivals),
            "127.0.0.1",
            opening.port,
        )
        async with asyncio.timeout(_PATIENCE_SECONDS):
            await socket.opened
        return socket

    async def receive(self, each: int) -> float:
        """Return the time of the last event. Wait until `each` times as many events have arrived as there are sockets."""
        count = each * len(self._sockets)
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while len(self._arrivals) < count:
            if time.monotonic() > deadline:
                received = len(self._arrivals)
                raise SocketsFailed(f"{received} of {count} received the event")
            await asyncio.sleep(0.02)
        last = max(self._arrivals)
        self._arrivals.clear()
        return last


class Listeners:
    """Controls the client process from its parent process."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def open(self, opening: Opening) -> float:
        """Open sockets and send their first frames. Return the duration in seconds."""
        return float(self._order({"open": asdict(opening)}))

    def receive(self, each: int = 1) -> float:
        """Wait until every socket has received `each` further events.

        Return the time of the last one, in seconds of `time.monotonic`.
        """
        return float(self._order({"receive": each}))

    def _order(self, order: dict[str, Any]) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise SocketsFailed("the listeners have ended early")
        return json.loads(line)


@contextmanager
def listeners(cores: Sequence[int] | set[int]) -> Iterator[Listeners]:
    """Run the client process on the given processor cores."""
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.listeners"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=env.BASE_DIR,
    )
    os.sched_setaffinity(process.pid, cores)
    try:
        yield Listeners(process)
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()


async def _serve() -> None:
    loop = asyncio.get_running_loop()
    crowd = _Crowd()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        order = json.loads(line)
        if "open" in order:
            answer: Any = await crowd.open(Opening(**order["open"]))
        else:
            answer = await crowd.receive(order["receive"])
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    uvloop.run(_serve())
