"""A worker process, which executes one job after the other.

`nodeapi.tracing.process` starts it as `python -m nodeapi.tracing.worker SOCKET`; the
argument is an inherited descriptor. It does not load Django. It exits when the other
end of the socket is closed, even during a job.
"""

from __future__ import annotations

import logging
import os
import resource
import select
import signal
import socket
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg

from nodeapi.tracing import wire
from nodeapi.tracing.execution import JobFailed, execute
from nodeapi.tracing.jobs import TraceJob
from nodeapi.tracing.spool import SpoolFull, SpoolWriter
from nodeapi.tracing.wire import HEAD, LENGTH, WorkerSettings

STACK_BYTES = 512 * 2**20
"""Stack of the executing thread; calls nest 1024 deep. Only touched pages take memory."""

NICENESS = 19
"""Niceness of the executing thread, so that imports and reads come first. At 10, a
worker on the service's core took a fifth of it, at 19 a few hundredths (`bench
beside`)."""

logger = logging.getLogger(__name__)


class Worker:
    """Serves jobs over a socket until it is closed."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self._connection: psycopg.Connection[Any] | None = None
        self._settings: WorkerSettings

    def serve(self) -> None:
        """Execute jobs until the socket is closed."""
        with suppress(ConnectionError):  # the service has gone
            self._serve()

    def _serve(self) -> None:
        settings, _ = self._receive()
        self._settings = WorkerSettings.decode(settings)
        _limit_memory(self._settings.memory_bytes)
        # Not earlier: on a busy machine the imports would take a minute.
        os.setpriority(os.PRIO_PROCESS, 0, NICENESS)
        self._send(wire.READY)
        while True:
            job, descriptors = self._receive()
            if not job:
                return
            try:
                self._send(*self._answer(TraceJob.decode(job), descriptors[0]))
            finally:
                os.close(descriptors[0])

    def _answer(self, job: TraceJob, descriptor: int) -> tuple[bytes, bytes]:
        spool = SpoolWriter(descriptor, self._settings.result_bytes)
        try:
            self._execute(job, spool)
            spool.flush()
        except JobFailed as error:
            return wire.FAILED, str(error).encode()
        except SpoolFull:
            return wire.TOO_LARGE, b""
        except psycopg.OperationalError as error:
            logger.warning("trace worker: the database: %s", error)
            return wire.UNAVAILABLE, b""
        except (MemoryError, SystemError):
            # SystemError is raised where the interpreter does not expect MemoryError.
            # The exit frees the memory.
            os._exit(wire.OUT_OF_MEMORY_STATUS)
        except ConnectionError:
            raise  # the service has gone
        except Exception:
            logger.exception("trace worker: job on 0x%s failed", job.block_hash.hex())
            return wire.CRASHED, b""
        return wire.DONE, LENGTH.pack(spool.size)

    def _execute(self, job: TraceJob, spool: SpoolWriter) -> None:
        """Execute a job; repeat it if an idle connection turns out to be lost."""
        waited = self._connection is not None
        try:
            execute(self._connected(), job, spool.write, self._progress)
        except psycopg.OperationalError:
            self._connection = None
            if not waited or spool.size:
                raise
            execute(self._connected(), job, spool.write, self._progress)

    def _progress(self) -> None:
        self._send(wire.PROGRESS)

    def _connected(self) -> psycopg.Connection[Any]:
        if self._connection is None:
            self._connection = psycopg.connect(
                self._settings.conninfo, autocommit=True, connect_timeout=5
            )
        return self._connection

    def _receive(self) -> tuple[bytes, list[int]]:
        """Return a message and its descriptors; b"" at the end."""
        head, descriptors, _, _ = socket.recv_fds(self._socket, LENGTH.size, 1)
        if not head:
            return b"", []
        (length,) = LENGTH.unpack(head)
        data = bytearray()
        while len(data) < length:
            part = self._socket.recv(length - len(data))
            if not part:
                return b"", []
            data += part
        return bytes(data), descriptors

    def _send(self, kind: bytes, rest: bytes = b"") -> None:
        self._socket.sendall(HEAD.pack(kind, len(rest)) + rest)


def _limit_memory(extra: int) -> None:
    """Limit the process's memory to the present size plus `extra` bytes.

    The limit applies to address space, which includes the executing thread's stack.
    """
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + extra
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _wait_for_close(connected: socket.socket) -> None:
    """Wait until the other end of a socket is closed."""
    poll = select.poll()
    poll.register(connected, select.POLLRDHUP)
    poll.poll()


def main(descriptor: int) -> None:
    """Serve jobs over an inherited socket."""
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # Ctrl-C reaches the whole process group
    logging.basicConfig(level=logging.WARNING)
    connected = socket.socket(fileno=descriptor)
    sys.setrecursionlimit(10**6)  # the stack size is the limit
    threading.stack_size(STACK_BYTES)
    threading.Thread(target=Worker(connected).serve, daemon=True).start()
    _wait_for_close(connected)
    os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]))
