"""A worker process, which executes one job after the other.

`nodeapi.tracing.process` forks it (`server.forking`) and calls `main`. It does not use
Django. It exits when the other end of the socket is closed, even during a job.
"""

from __future__ import annotations

import logging
import mmap
import os
import queue
import resource
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import orjson
import psycopg

from evm import kzg
from evm.proved_state import UnknownValues
from jsonrpc.errors import RpcError
from nodeapi.chain.replay_counts import counts
from nodeapi.results.spool import SpoolFull, SpoolWriter
from nodeapi.tracing import wire
from nodeapi.tracing.alarm import CHECK_SECONDS, Alarm
from nodeapi.tracing.context import TaskTimedOut
from nodeapi.tracing.execution import JobFailed, execute
from nodeapi.tracing.jobs import TaskJob, TraceJob
from nodeapi.tracing.running import TaskRunner
from nodeapi.tracing.wire import HEAD, LENGTH, WorkerSettings

CONNECT_SECONDS = 5
"""Time limit for connecting."""


def connect(conninfo: str) -> psycopg.Connection[Any]:
    """Return a connection in autocommit mode. Its queries end when it is closed.

    Otherwise PostgreSQL would execute the query of a killed process to its end.

    conninfo: connection string of libpq. Raises: psycopg.OperationalError.
    """
    connection = psycopg.connect(
        conninfo, autocommit=True, connect_timeout=CONNECT_SECONDS
    )
    connection.execute("SET client_connection_check_interval = '1s'")
    return connection


T = TypeVar("T")

STACK_BYTES = 512 * 2**20
"""Stack of the executing thread; calls nest 1024 deep. Only touched pages take memory."""

CALL_NICENESS = 5
"""Niceness of the thread that executes tasks. They are short, and callers wait for them,
but other reads come first."""

NICENESS = 19
"""Niceness of the thread that executes trace jobs, so that imports and reads come first. At 10, a
worker on the service's core took a fifth of it, at 19 a few hundredths (`bench
beside`)."""

FLUSH_SECONDS = 0.01
"""Time after which outcomes are sent, even if tasks of the array are unfinished."""

logger = logging.getLogger(__name__)


class Worker:
    """Serves jobs over a socket until it is closed."""

    def __init__(self, connected: socket.socket, marker: int) -> None:
        self._socket = connected
        self._connection: psycopg.Connection[Any] | None = None
        self._settings: WorkerSettings
        self._marker = mmap.mmap(marker, wire.MARKER_BYTES)
        self.alarm = Alarm(TaskTimedOut)
        self._tasks = TaskRunner(
            self.alarm, self._take_spool, self._mark, self._progress
        )
        self._spool: int | None = None
        self._outcomes: list[bytes] = []
        self._flushed = 0.0

    def serve(self) -> None:
        """Execute jobs until the socket is closed."""
        with suppress(ConnectionError):  # the service has closed the socket
            self._serve()

    def _serve(self) -> None:
        settings, _ = self._receive()
        self._settings = WorkerSettings.decode(settings)
        traces = _Thread(NICENESS)  # before the limit of memory, which counts its stack
        _limit_memory(self._settings.memory_bytes)
        # Not earlier: on a busy machine the imports would take a minute.
        os.setpriority(os.PRIO_PROCESS, 0, CALL_NICENESS)
        self._send(wire.READY)
        while True:
            message, descriptors = self._receive()
            if not message:
                return
            if message == wire.PREPARE:
                kzg.prepare()
                self._send(wire.READY)
                continue
            if message.startswith(b"["):
                self._keep_spool(descriptors)
                self._run_tasks(message)
                continue
            try:
                job = TraceJob.decode(message)
                self._send(*traces.call(partial(self._answer, job, descriptors[0])))
            finally:
                os.close(descriptors[0])

    # Tasks

    def _keep_spool(self, descriptors: list[int]) -> None:
        """Keep the file for the next long result of a task."""
        for descriptor in descriptors:
            self._spool = descriptor

    def _take_spool(self) -> SpoolWriter | None:
        """Return a writer of the kept file, which is emptied; None without a file."""
        if self._spool is None:
            return None
        self._empty_spool(self._spool)
        return SpoolWriter(self._spool, self._settings.result_bytes)

    def _empty_spool(self, descriptor: int) -> None:
        os.ftruncate(descriptor, 0)
        os.lseek(descriptor, 0, os.SEEK_SET)

    def _run_tasks(self, message: bytes) -> None:
        jobs = [TaskJob.from_json(fields) for fields in orjson.loads(message)]
        try:
            self._tasks.run(self._connected, jobs, self._add_outcome)
            self._flush(wire.END)
        except (MemoryError, SystemError):
            os._exit(wire.OUT_OF_MEMORY_STATUS)
        if self._spool is not None:  # of a task that failed while it was writing
            self._empty_spool(self._spool)

    def _add_outcome(
        self, place: int, kind: bytes, gas_used: int, seconds: float, rest: bytes
    ) -> None:
        """Add an outcome to the next message, which is sent after a short time.

        The file for a long result is used up by a task that succeeds. One that fails
        leaves it for the next task, as the service sends no other file then.
        """
        if kind == wire.SPOOLED and self._spool is not None:
            os.close(self._spool)
            self._spool = None
        if kind in (wire.UNAVAILABLE, wire.TIMED_OUT):
            self._connection = None  # a query may still run on it
        head = wire.OUTCOME.pack(place, kind, gas_used, seconds, len(rest))
        self._outcomes.append(head)
        self._outcomes.append(rest)
        now = time.monotonic()
        if now - self._flushed > FLUSH_SECONDS:
            self._flush()

    def _flush(self, *kinds: bytes) -> None:
        """Send the outcomes, then messages that consist of their kind only."""
        rest = b"".join(self._outcomes)
        self._outcomes.clear()
        parts = [HEAD.pack(wire.OUTCOMES, len(rest)), rest] if rest else []
        parts += [HEAD.pack(kind, 0) for kind in kinds]
        self._socket.sendall(b"".join(parts))
        self._flushed = time.monotonic()

    def _mark(self, place: int) -> None:
        """Note which task is executing, for the service if this process dies."""
        self._marker[: wire.MARKER.size] = wire.MARKER.pack(place + 1)
        if place < 0:
            self._count_replays()

    def _count_replays(self) -> None:
        """Show the service how many replays began from a list, and how many did not."""
        self._marker[wire.MARKER.size :] = wire.REPLAYS.pack(
            counts.from_lists, counts.by_execution, counts.missing
        )

    # Traces

    def _answer(self, job: TraceJob, descriptor: int) -> tuple[bytes, bytes]:
        begun = time.thread_time()
        kind, rest = self._outcome(job, descriptor)
        self._count_replays()
        return kind, wire.SECONDS.pack(time.thread_time() - begun) + rest

    def _outcome(self, job: TraceJob, descriptor: int) -> tuple[bytes, bytes]:
        spool = SpoolWriter(descriptor, self._settings.result_bytes)
        try:
            self._execute(job, spool)
            spool.flush()
        except JobFailed as error:
            return wire.FAILED, str(error).encode()
        except SpoolFull:
            return wire.TOO_LARGE, b""
        except UnknownValues as error:
            return wire.UNKNOWN, wire.encode_unknown(error)
        except RpcError as error:
            rest = orjson.dumps([error.code, error.message, error.data])
            return wire.REFUSED, rest
        except psycopg.OperationalError as error:
            logger.warning("trace worker: the database: %s", error)
            return wire.UNAVAILABLE, b""
        except (MemoryError, SystemError):
            # SystemError is raised where the interpreter does not expect MemoryError.
            # The exit frees the memory.
            os._exit(wire.OUT_OF_MEMORY_STATUS)
        except ConnectionError:
            raise  # the service has closed the socket
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
        if self._connection is None or self._connection.closed:
            self._connection = connect(self._settings.conninfo)
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


class _Thread:
    """A thread with a large stack and a niceness of its own, used by another thread."""

    def __init__(self, niceness: int) -> None:
        """Start the thread, and return when it has its niceness."""
        self._niceness = niceness
        self._calls: queue.SimpleQueue[Callable[[], Any]] = queue.SimpleQueue()
        self._results: queue.SimpleQueue[Any] = queue.SimpleQueue()
        threading.Thread(target=self._serve, daemon=True).start()
        self._results.get()

    def call(self, function: Callable[[], T]) -> T:
        """Call a function in the thread, and return its result or raise its error."""
        self._calls.put(function)
        result, error = self._results.get()
        if error is not None:
            raise error
        found: T = result
        return found

    def _serve(self) -> None:
        os.setpriority(os.PRIO_PROCESS, 0, self._niceness)
        self._results.put(None)
        while True:
            function = self._calls.get()
            try:
                self._results.put((function(), None))
            except BaseException as error:
                self._results.put((None, error))
            del function


def _limit_memory(extra: int) -> None:
    """Limit the process's memory to the present size plus `extra` bytes.

    The limit applies to address space, which includes the executing thread's stack.
    """
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + extra
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _wait_for_close(connected: socket.socket, alarm: Alarm) -> None:
    """Wait until the other end of a socket is closed, and watch the time of tasks."""
    poll = select.poll()
    poll.register(connected, select.POLLRDHUP)
    while not poll.poll(1000 * CHECK_SECONDS):
        alarm.check()


def main(descriptor: int, marker: int) -> None:
    """Serve jobs over an inherited socket.

    marker: descriptor of a memory file in which the worker keeps the place of the
        executing task. The service reads it when a worker has died.
    """
    # Ctrl-C reaches the whole process group.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.basicConfig(level=logging.WARNING)  # where no settings were read
    connected = socket.socket(fileno=descriptor)
    sys.setrecursionlimit(10**6)  # the stack size is the limit
    threading.stack_size(STACK_BYTES)
    worker = Worker(connected, marker)
    threading.Thread(target=worker.serve, daemon=True).start()
    _wait_for_close(connected, worker.alarm)
    os._exit(0)
