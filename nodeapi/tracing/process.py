"""A worker process, from the service's side."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from pathlib import Path

from nodeapi.tracing import wire
from nodeapi.tracing.wire import HEAD, LENGTH, WorkerSettings

PROJECT = Path(__file__).resolve().parents[2]
NICENESS = 19
"""Importing blocks and reading them come first: at 10 a worker on the service's own core
took a fifth of it, at 19 a few hundredths (`bench beside`)."""
START_SECONDS = 60.0
"""A worker is ready after one second, on a machine that has nothing else to do."""
GRACE_SECONDS = 1.0
"""How much later than a transaction's time-out it is given up from outside."""


class WorkerDied(Exception):
    """Raised when a worker process is gone before it has answered."""


class WorkerProcess:
    """One process, which executes one job at a time. Killed, it is of no more use."""

    def __init__(self, settings: WorkerSettings) -> None:
        """Start nothing yet."""
        self._settings = settings
        self._process: subprocess.Popen[bytes] | None = None
        self._spawning: asyncio.Task[None] | None = None
        self._socket, self._theirs = socket.socketpair()
        self._socket.setblocking(False)

    @property
    def pid(self) -> int | None:
        """The process's number, once it is started."""
        return None if self._process is None else self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether the process runs."""
        return self._process is not None and self._process.poll() is None

    async def start(self) -> None:
        """Start the process, and return when it is ready.

        Raises: WorkerDied, TimeoutError.
        """
        # A fork takes milliseconds, which is too long for the event loop.
        self._spawning = asyncio.create_task(asyncio.to_thread(self._spawn))
        await asyncio.shield(self._spawning)
        self._theirs.close()
        await self._send(self._settings.encode(), [])
        async with asyncio.timeout(START_SECONDS):
            await self._receive()

    def _spawn(self) -> None:
        descriptor = self._theirs.fileno()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "nodeapi.tracing.worker", str(descriptor)],
            pass_fds=(descriptor,),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            cwd=PROJECT,
        )
        os.setpriority(os.PRIO_PROCESS, self._process.pid, NICENESS)

    async def execute(
        self, job: bytes, descriptor: int, timeout: float
    ) -> tuple[bytes, bytes]:
        """Have an encoded job executed, and return what became of it.

        descriptor: the file for its answer. timeout: seconds for each transaction.
        Raises: WorkerDied, TimeoutError; the process is to be killed then.
        """
        await self._send(job, [descriptor])
        while True:
            async with asyncio.timeout(timeout + GRACE_SECONDS):
                kind, rest = await self._receive()
            if kind != wire.PROGRESS:
                return kind, rest

    async def kill(self) -> None:
        """End the process, whatever it is doing, be it that it is just being born."""
        if self._spawning is not None:
            await asyncio.wait([self._spawning])
        self._socket.close()
        self._theirs.close()
        if self._process is not None:
            self._process.kill()
            await asyncio.shield(asyncio.to_thread(self._process.wait))

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
        data, loop = b"", asyncio.get_running_loop()
        while len(data) < length:
            try:
                part = await loop.sock_recv(self._socket, length - len(data))
            except OSError as error:
                raise WorkerDied from error
            if not part:
                raise WorkerDied
            data += part
        return data
