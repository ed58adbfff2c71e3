"""The service's side of a worker process."""

from __future__ import annotations

import asyncio
import os
import socket
import weakref
from collections.abc import Callable, Sequence

from nodeapi.chain.replay_counts import ReplayCounts
from nodeapi.results.spool import ResultFile
from nodeapi.tracing import wire
from nodeapi.tracing.wire import HEAD, LENGTH, WorkerSettings
from server import forking
from server.forking import Forked

START_SECONDS = 60.0
"""Time limit of a worker's start, which takes milliseconds on an idle machine."""
GRACE_SECONDS = 1.0
"""Time after a transaction's timeout at which the worker is killed."""


class WorkerDied(Exception):
    """Raised when a worker process exits before it has sent its result."""


TakeOutcome = Callable[[int, bytes, int, float, bytes], object]
"""Takes the place of a task in its array, the kind of its outcome, the gas used, the
seconds of processor time, and the rest; see `nodeapi.tracing.wire`."""

_READ_BYTES = 2**16


class WorkerProcess:
    """One process, which executes one message at a time. It can't be restarted."""

    def __init__(self, settings: WorkerSettings) -> None:
        """Prepare a worker; `start` starts the process."""
        self._marker = os.memfd_create("marker")
        os.ftruncate(self._marker, wire.MARKER_BYTES)
        weakref.finalize(self, os.close, self._marker)
        self._settings = settings
        self._unread = bytearray()
        self.spool: ResultFile | None = None
        """The file that the worker keeps for the next long result of a task."""
        self.is_prepared = False
        """Whether `prepare` was called, or will be as soon as the pool is idle."""
        self._process: Forked | None = None
        self._spawning: asyncio.Task[None] | None = None
        self._socket, self._theirs = socket.socketpair()
        self._socket.setblocking(False)

    @property
    def pid(self) -> int | None:
        """The process id, None before the start."""
        return None if self._process is None else self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether the process runs."""
        return self._process is not None and self._process.poll() is None

    async def start(self) -> None:
        """Start the process, and return when it is ready.

        Raises: WorkerDied, TimeoutError.
        """
        # The fork server may be importing.
        self._spawning = asyncio.create_task(asyncio.to_thread(self._spawn))
        await asyncio.shield(self._spawning)
        self._theirs.close()
        await self._send(self._settings.encode(), [])
        async with asyncio.timeout(START_SECONDS):
            await self._receive()

    async def prepare(self) -> None:
        """Let the process load what rare tasks need.

        Raises: WorkerDied, TimeoutError.
        """
        await self._send(wire.PREPARE, [])
        async with asyncio.timeout(START_SECONDS):
            await self._receive()

    def _spawn(self) -> None:
        self._process = forking.shared.start(
            "nodeapi.tracing.worker:main",
            descriptors=[self._theirs.fileno(), self._marker],
            title="tracing.worker",
        )

    async def execute(
        self, job: bytes, descriptor: int, timeout: float
    ) -> tuple[bytes, float, bytes]:
        """Execute an encoded job.

        Return the kind of the outcome, the seconds of processor time, and the rest.

        descriptor: the file for the result. timeout: seconds for each transaction.
        Raises: WorkerDied; TimeoutError, after which the caller has to kill the process.
        """
        await self._send(job, [descriptor])
        while True:
            async with asyncio.timeout(timeout + GRACE_SECONDS):
                kind, rest = await self._receive()
            if kind != wire.PROGRESS:
                (seconds,) = wire.SECONDS.unpack_from(rest)
                return kind, seconds, rest[wire.SECONDS.size :]

    async def execute_tasks(
        self,
        jobs: Sequence[bytes],
        descriptor: int | None,
        timeout: float,
        take: TakeOutcome,
    ) -> None:
        """Execute encoded tasks, of which the last ones may be left without an outcome.

        descriptor: the file for the next long result, if the worker has none.
        timeout: the longest time of a task, in seconds.
        take: called with each outcome.

        Raises: WorkerDied; TimeoutError, after which the caller has to kill the process.
        """
        message = b"[" + b",".join(jobs) + b"]"
        await self._send(message, [] if descriptor is None else [descriptor])
        while True:
            async with asyncio.timeout(timeout + GRACE_SECONDS):
                kind, rest = await self._receive()
            if kind == wire.END:
                return
            if kind == wire.OUTCOMES:
                _take_outcomes(rest, take)

    @property
    def executing(self) -> int | None:
        """The place of the task that is executing, or was when the process died."""
        (place,) = wire.MARKER.unpack(os.pread(self._marker, wire.MARKER.size, 0))
        return place - 1 if place else None

    @property
    def replays(self) -> ReplayCounts:
        """How many replays have begun within a block."""
        data = os.pread(self._marker, wire.REPLAYS.size, wire.MARKER.size)
        return ReplayCounts(*wire.REPLAYS.unpack(data))

    async def kill(self) -> int | None:
        """Kill the process, even if it is still starting. Return its exit status.

        The status is negative for a signal, and None if the process never ran.
        """
        if self._spawning is not None:
            await asyncio.wait([self._spawning])
        self._socket.close()
        self._theirs.close()
        if self._process is None:
            return None
        self._process.kill()
        return await asyncio.shield(asyncio.to_thread(self._process.wait))

    async def _send(self, data: bytes, descriptors: list[int]) -> None:
        try:
            # The few bytes of a length always find room in an idle socket.
            socket.send_fds(self._socket, [LENGTH.pack(len(data))], descriptors)
            await asyncio.get_running_loop().sock_sendall(self._socket, data)
        except OSError as error:
            raise WorkerDied from error

    async def _receive(self) -> tuple[bytes, bytes]:
        kind, length = HEAD.unpack(await self._read(HEAD.size))
        return kind, await self._read(length)

    async def _read(self, length: int) -> bytes:
        unread, loop = self._unread, asyncio.get_running_loop()
        while len(unread) < length:
            try:
                part = await loop.sock_recv(self._socket, _READ_BYTES)
            except OSError as error:
                raise WorkerDied from error
            if not part:
                raise WorkerDied
            unread += part
        data = bytes(unread[:length])
        del unread[:length]
        return data


def _take_outcomes(data: bytes, take: TakeOutcome) -> None:
    """Call a function with each outcome in a message."""
    start, size = 0, wire.OUTCOME.size
    while start < len(data):
        place, kind, gas_used, seconds, length = wire.OUTCOME.unpack_from(data, start)
        start += size
        take(place, kind, gas_used, seconds, data[start : start + length])
        start += length
