"""A worker process: it executes one job after the other.

Started by `nodeapi.tracing.process` as `python -m nodeapi.tracing.worker SOCKET`, the
latter an inherited descriptor. It knows no Django. It leaves when the other end of the
socket is closed, be it in the middle of a job.
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
"""Of the thread that executes: calls nest 1024 deep. Only what is touched is used."""

logger = logging.getLogger(__name__)


class Worker:
    """Serves jobs over a socket until it is closed."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self._connection: psycopg.Connection[Any] | None = None
        self._settings: WorkerSettings

    def serve(self) -> None:
        """Do what comes; return when nothing more can come."""
        with suppress(ConnectionError):  # nobody is there any more
            self._serve()

    def _serve(self) -> None:
        settings, _ = self._receive()
        self._settings = WorkerSettings.decode(settings)
        _limit_memory(self._settings.memory_bytes)
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
            # The latter comes from where the interpreter did not expect the former.
            # What it holds is let go of together with it.
            logger.warning("trace worker: out of memory, leaving")
            os._exit(1)
        except ConnectionError:
            raise  # the answer is for nobody
        except Exception:
            logger.exception("trace worker: job on 0x%s failed", job.block_hash.hex())
            return wire.CRASHED, b""
        return wire.DONE, LENGTH.pack(spool.size)

    def _execute(self, job: TraceJob, spool: SpoolWriter) -> None:
        """Execute a job; once more if the connection was lost while nobody used it."""
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
        """Return a message and what descriptors came with it; empty at the end."""
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
    """Let the process have no more than so much memory on top of what it has.

    What counts is address space; the executing thread's stack is in it already.
    """
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + extra
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _leave_with(connected: socket.socket) -> None:
    """Return when the other end of a socket is closed."""
    poll = select.poll()
    poll.register(connected, select.POLLRDHUP)
    poll.poll()


def main(descriptor: int) -> None:
    """Serve jobs over an inherited socket."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to the whole group
    logging.basicConfig(level=logging.WARNING)
    connected = socket.socket(fileno=descriptor)
    sys.setrecursionlimit(10**6)  # the stack is what limits it
    threading.stack_size(STACK_BYTES)
    threading.Thread(target=Worker(connected).serve, daemon=True).start()
    _leave_with(connected)
    os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]))
