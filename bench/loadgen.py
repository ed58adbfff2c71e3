"""A load generator: one process with raw sockets and little Python code per request.

It is a closed loop: each connection has one request in flight, and sends the next one
when the response is complete. The process reads jobs as lines of JSON on standard input,
and prints one line for each result. `Loadgen` controls it from the parent process.

Before a server's first load, every request is sent once. Its response must be JSON-RPC
with a result. Under load, each response must have status 200 and the same length as the
first one, so that errors are detected. The first response on each connection is not
counted, because its time includes accepting the connection.
"""

from __future__ import annotations

import gc
import json
import os
import select
import socket
import subprocess
import sys
import time
from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from config import env

_BUFFER_BYTES = 2**18
_STATUS_LINE = b"HTTP/1.1 200 "
_LENGTH = b"content-length: "
_CHUNKED = b"transfer-encoding: chunked"
_LAST_CHUNK = b"\r\n0\r\n\r\n"
"""The end of a chunk, and the empty chunk after the last one."""
_PATIENCE_SECONDS = 10
"""Timeout of a request, in seconds."""


@dataclass(frozen=True, slots=True)
class Job:
    """A load to run: the server's port, the requests, and how they are sent."""

    port: int
    requests: list[str]
    """Whole HTTP requests, sent in turn; text of Latin-1."""
    connections: int
    seconds: float
    max_requests: int = 200_000
    probed: int | None = None
    """Number of requests that are sent once before the load, by default all. The others
    have to be answered with as many bytes as the first one."""


@dataclass(frozen=True, slots=True)
class Load:
    """The result of one load."""

    requests: int
    seconds: float
    p50_ms: float
    p99_ms: float

    @property
    def rate(self) -> float:
        """Completed requests per second."""
        return self.requests / self.seconds


class LoadFailed(RuntimeError):
    """Raised when a response is wrong or does not arrive in time."""


# In its own process


class _Connection:
    """A keep-alive connection with at most one request in flight."""

    __slots__ = ("expected", "remaining", "sent_at", "socket")

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), _PATIENCE_SECONDS)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.expected = 0
        """Length of the answer's body."""
        self.remaining = 0
        """Bytes of the current response that have not arrived; 0 between responses."""
        self.sent_at = 0.0

    def ask(self, request: bytes) -> bytes:
        """Send a request and return the answer's body. Raises: LoadFailed."""
        self.socket.sendall(request)
        data = self.socket.recv(_BUFFER_BYTES)
        body, length = begin_answer(data)
        while len(data) < body + length:
            more = self.socket.recv(_BUFFER_BYTES)
            if not more:
                raise LoadFailed("the server hung up")
            data += more
        return data[body:]


def begin_answer(data: bytes, expected: int | None = None) -> tuple[int, int]:
    """Parse a response's headers; return the offset and the length of its body.

    The length of a body in chunks includes `_LAST_CHUNK`. It has to be in one chunk, as
    are geth's.

    Raises: LoadFailed if the status is not 200 or the length is not the expected one.
    """
    body = data.find(b"\r\n\r\n") + 4
    head = data[:body].lower()
    if not head.startswith(_STATUS_LINE.lower()) or body < 4:
        raise LoadFailed(f"not an answer: {data[:300]!r}")
    if (at := head.find(_LENGTH)) >= 0:
        at += len(_LENGTH)
        length = int(head[at : head.index(b"\r", at)])
    elif _CHUNKED in head:
        body, size = data.index(b"\r\n", body) + 2, body
        length = int(data[size : body - 2], 16) + len(_LAST_CHUNK)
    else:
        raise LoadFailed(f"an answer without a length: {data[:300]!r}")
    if expected is not None and length != expected:
        raise LoadFailed(f"{length} bytes instead of {expected}: {data[:400]!r}")
    return body, length


def probe(job: Job, requests: Iterable[bytes]) -> list[int]:
    """Send each request once, and return the lengths of the response bodies.

    Raises: LoadFailed if a body is not JSON-RPC with a result.
    """
    connection = _Connection(job.port)
    lengths = []
    with connection.socket:
        for request in requests:
            body = connection.ask(request)
            answer = json.loads(body.removesuffix(_LAST_CHUNK))
            for one in answer if isinstance(answer, list) else [answer]:
                if one.get("jsonrpc") != "2.0" or one.get("result") is None:
                    raise LoadFailed(f"{request!r} was answered with {one!r}")
            lengths.append(len(body))
    return lengths


_probed: dict[tuple[int, tuple[str, ...]], list[int]] = {}
"""Lengths of the responses to probed requests, by port."""


def run(job: Job) -> Load:
    """Run a load on a server.

    Raises: LoadFailed for a wrong or late response; OSError for a failed connection.
    """
    requests = [request.encode("latin-1") for request in job.requests]
    key = (job.port, tuple(job.requests[: job.probed]))
    if key not in _probed:
        _probed[key] = probe(job, requests[: job.probed])
    lengths = _probed[key]
    lengths = lengths + lengths[:1] * (len(requests) - len(lengths))
    connections = [_Connection(job.port) for _ in range(job.connections)]
    try:
        for connection in connections:
            connection.ask(requests[0])
        gc.collect()
        gc.disable()
        latencies, seconds = _drive(job, requests, lengths, connections)
    finally:
        gc.enable()
        for connection in connections:
            connection.socket.close()
    ordered = sorted(latencies)
    count = len(ordered)
    return Load(
        requests=count,
        seconds=seconds,
        p50_ms=ordered[count // 2] * 1000,
        p99_ms=ordered[min(count - 1, count * 99 // 100)] * 1000,
    )


def _drive(
    job: Job,
    requests: Sequence[bytes],
    lengths: Sequence[int],
    connections: Sequence[_Connection],
) -> tuple[array[float], float]:
    """Keep every connection busy; return the latencies and the time, in seconds."""
    latencies = array("d")
    turns = len(requests)
    turn = 0
    buffer = bytearray(_BUFFER_BYTES)
    clock = time.perf_counter
    epoll = select.epoll()
    by_descriptor = {one.socket.fileno(): one for one in connections}
    start = clock()
    deadline = start + job.seconds
    for descriptor, connection in by_descriptor.items():
        epoll.register(descriptor, select.EPOLLIN)
        connection.expected = lengths[turn]
        connection.sent_at = clock()
        connection.socket.send(requests[turn])
        turn = (turn + 1) % turns
    # At least one response for each connection; otherwise there is no result.
    while len(latencies) < len(connections) or (
        clock() < deadline and len(latencies) < job.max_requests
    ):
        events = epoll.poll(_PATIENCE_SECONDS)
        if not events:
            raise LoadFailed(f"no answer within {_PATIENCE_SECONDS} s")
        for descriptor, _ in events:
            connection = by_descriptor[descriptor]
            received = connection.socket.recv_into(buffer)
            if connection.remaining:
                connection.remaining -= received
            else:
                head = bytes(buffer[: min(received, 512)])
                body, length = begin_answer(head, connection.expected)
                connection.remaining = body + length - received
            if connection.remaining or not received:
                if not received:
                    raise LoadFailed("the server hung up")
                continue
            now = clock()
            latencies.append(now - connection.sent_at)
            connection.expected = lengths[turn]
            connection.sent_at = now
            connection.socket.send(requests[turn])
            turn += 1
            if turn == turns:
                turn = 0
    epoll.close()
    return latencies, clock() - start


def main(cores: set[int]) -> None:
    """Run the jobs from standard input, until it ends."""
    os.sched_setaffinity(0, cores)
    print("ready", flush=True)
    for line in sys.stdin:
        try:
            answer: dict[str, Any] = asdict(run(Job(**json.loads(line))))
        except (LoadFailed, OSError) as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


# From outside


class Loadgen:
    """Controls a load generator process from its parent process."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def load(self, job: Job) -> Load:
        """Run a load, and return its result. Raises: LoadFailed if a response is wrong."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asdict(job)) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise LoadFailed("the load generator ended")
        answer = json.loads(line)
        if "error" in answer:
            raise LoadFailed(answer["error"])
        return Load(**answer)


@contextmanager
def loadgen(cores: set[int]) -> Iterator[Loadgen]:
    """Run a load generator on the given processor cores during a `with` block."""
    with subprocess.Popen(
        [sys.executable, "-m", "bench.loadgen", *map(str, cores)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=env.BASE_DIR,
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield Loadgen(process)
        assert process.stdin is not None
        process.stdin.close()


if __name__ == "__main__":
    main(set(map(int, sys.argv[1:])))
