"""Processes that execute fixture files.

Each worker takes a file at a time and reports every test before and after it. A test
that exceeds its time limit is ended together with its process, as is one that crashes
the interpreter; a new process then continues with the next test of that file.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from tests.consensus.files import execute, read_tests
from tests.consensus.verdict import Status, Verdict

_POLL_SECONDS = 1.0

_processes = get_context("forkserver")
_processes.set_forkserver_preload(["tests.consensus.files"])


@dataclass(frozen=True, slots=True)
class Task:
    """A file, and how many of its tests have been executed already."""

    path: Path
    skip: int = 0


@dataclass(slots=True)
class Running:
    """A worker process and the test that it executes."""

    process: Any
    connection: Connection
    task: Task
    done: int = 0
    """Number of the file's tests that are finished, including skipped ones."""
    test: str = ""
    """Name of the test, empty while the file is read."""
    since: float = 0.0
    """When the test began, in `time.monotonic` seconds; 0 before the first one."""


Event = tuple[Path, Verdict] | None
"""A file and the verdict of one of its tests, or None, at least once a second."""


class Pool:
    """Executes files in several processes."""

    def __init__(
        self, files: list[Path], *, jobs: int, only: str, limit_seconds: float
    ) -> None:
        """Prepare a run.

        only: text that must occur in the path and name of a test; empty: all tests.
        limit_seconds: how long one test may take.
        """
        self._tasks = [Task(path) for path in reversed(files)]
        self._jobs = max(1, jobs)
        self._only = only
        self._limit_seconds = limit_seconds
        self.running: list[Running] = []

    def events(self) -> Iterator[Event]:
        """Execute everything, and yield verdicts as they come."""
        try:
            while self._tasks or self.running:
                while self._tasks and len(self.running) < self._jobs:
                    self._start(self._tasks.pop())
                connections = [worker.connection for worker in self.running]
                ready = wait(connections, _POLL_SECONDS)
                for worker in list(self.running):
                    if worker.connection in ready:
                        yield from self._receive(worker)
                    elif self._is_late(worker):
                        yield self._give_up(worker, self._late_text())
                yield None
        finally:
            for worker in self.running:
                worker.process.kill()
                worker.process.join()

    def _start(self, task: Task, idle: Running | None = None) -> None:
        """Give a task to an idle worker, or to a new one."""
        if idle is None:
            connection, other = _processes.Pipe()
            process = _processes.Process(target=work, args=(other,), daemon=True)
            process.start()
            other.close()
            idle = Running(process, connection, task)
            self.running.append(idle)
        idle.task, idle.done, idle.test = task, task.skip, ""
        idle.connection.send((task.path, task.skip, self._only))

    def _receive(self, worker: Running) -> Iterator[Event]:
        try:
            kind, content = worker.connection.recv()
        except (EOFError, ConnectionResetError):
            worker.process.join()
            status = worker.process.exitcode
            yield self._give_up(worker, f"the process ended with status {status}")
            return
        if kind == "begin":
            worker.test, worker.since = content, time.monotonic()
        elif kind == "verdict":
            worker.done, worker.test = worker.done + 1, ""
            if content is not None:
                yield worker.task.path, content
        elif self._tasks:
            self._start(self._tasks.pop(), worker)
        else:
            self._stop(worker)

    def _is_late(self, worker: Running) -> bool:
        seconds = time.monotonic() - worker.since
        return bool(worker.test) and seconds > self._limit_seconds

    def _late_text(self) -> str:
        return f"not finished after {self._limit_seconds:g} s"

    def _give_up(self, worker: Running, reason: str) -> Event:
        """End a worker and fail its test; the rest of its file is a task again."""
        self._stop(worker)
        if worker.test:
            self._tasks.append(Task(worker.task.path, worker.done + 1))
        name = worker.test or "(reading the file)"
        return worker.task.path, Verdict(name, Status.FAILED, reason)

    def _stop(self, worker: Running) -> None:
        worker.process.kill()
        worker.process.join()
        worker.connection.close()
        self.running.remove(worker)


def work(connection: Connection) -> None:
    """Execute tasks until the other side of the connection closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends its workers
    while True:
        try:
            path, skip, only = connection.recv()
        except EOFError:
            return
        _execute_file(connection, path, skip, only)
        connection.send(("idle", None))


def _execute_file(connection: Connection, path: Path, skip: int, only: str) -> None:
    try:
        for index, (name, test) in enumerate(read_tests(path)):
            if index < skip:
                continue
            if only not in f"{path}::{name}":
                connection.send(("verdict", None))
                continue
            connection.send(("begin", name))
            connection.send(("verdict", execute(name, test)))
    except (OSError, ValueError) as error:
        failure = Verdict("(file)", Status.FAILED, f"unreadable: {error}")
        connection.send(("verdict", failure))
