"""Child processes that are restarted, with growing pauses, when they end.

A child can wait for the end of its standard input to end with its parent
(`server.lifeline`).
"""

from __future__ import annotations

import logging
import subprocess
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Protocol

logger = logging.getLogger(__name__)

FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 60.0
"""Pauses before a restart. Each one is twice the pause before."""

STABLE_SECONDS = 60.0
"""Time after which a process counts as stable. Its next pause is the shortest one again."""

STOP_SECONDS = 10.0
"""Time after SIGTERM until a process is killed."""

KILL_SECONDS = 2.0
"""Longest wait for the end of a killed process."""

TURN_SECONDS = 0.2
"""Pause between two checks of all children."""


def next_pause(last_pause: float, ran_seconds: float) -> float:
    """Return the seconds to wait before a process that has ended is restarted.

    last_pause: the pause before its last start; 0 for the first start.
    ran_seconds: how long it has run since.
    """
    if last_pause == 0 or ran_seconds >= STABLE_SECONDS:
        return FIRST_PAUSE_SECONDS
    return min(2 * last_pause, LONGEST_PAUSE_SECONDS)


class Started(Protocol):
    """A process, such as `server.forking.Forked` or `subprocess.Popen`.

    Its standard input ends when this object is no longer used.
    """

    pid: int

    def poll(self) -> int | None:
        """Return the exit status, None if the process runs."""

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit status. Raises: subprocess.TimeoutExpired."""

    def terminate(self) -> None:
        """Send SIGTERM."""

    def kill(self) -> None:
        """Send SIGKILL."""


class _Child:
    """One child process, which is running or waiting for its restart.

    title: its name in the log. start: starts it.
    """

    def __init__(self, title: str, start: Callable[[], Started]) -> None:
        self._title = title
        self._starter = start
        self._process: Started | None = None
        self._started_at = 0.0
        self._pause = 0.0
        self._start_at = 0.0
        self._kill_at: float | None = None

    @property
    def pid(self) -> int | None:
        """The id of the running process, or None."""
        return None if self._process is None else self._process.pid

    def tend(self, now: float) -> None:
        """Start the process if its pause is over, and check whether it has ended.

        now: monotonic seconds, as in the other methods.
        """
        if self._has_ended(now) and now >= self._start_at:
            self._start(now)

    def retry(self) -> None:
        """End the pause, so that the next `tend` starts the process."""
        self._pause = self._start_at = 0.0

    def stop(self, now: float, stop_seconds: float) -> bool:
        """Send SIGTERM once, and SIGKILL after `stop_seconds`. Return at once.

        Returns: whether the process has ended.
        """
        process = self._process
        if process is None or process.poll() is not None:
            self._process = None
            return True
        if self._kill_at is None:
            self._kill_at = now + stop_seconds
            process.terminate()
        elif now >= self._kill_at:
            logger.warning("%s did not end and is killed", self._title)
            self.kill()
        return self._process is None

    def kill(self) -> None:
        """Kill the process if it is running."""
        if self._process is not None:
            self._process.kill()
            # A process that is blocked by disk I/O can't be killed yet.
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(KILL_SECONDS)
            self._process = None

    def _has_ended(self, now: float) -> bool:
        """Return whether no process is running. If one has ended, schedule its restart."""
        process = self._process
        if process is None:
            return True
        status = process.poll()
        if status is None:
            return False
        self._process = None
        self._schedule(now, f"{self._title} ended (status {status})")
        return True

    def _start(self, now: float) -> None:
        self._started_at = now
        try:
            self._process = self._starter()
        except OSError as error:
            self._schedule(now, f"{self._title} could not be started: {error}")

    def _schedule(self, now: float, event: str) -> None:
        self._pause = next_pause(self._pause, now - self._started_at)
        self._start_at = now + self._pause
        logger.error("%s, and is started again in %g s", event, self._pause)


class Children:
    """A changing set of child processes. Its methods belong to one thread.

    kind: the kind of process in the log, such as "follower".
    start: starts the child with a name. Raises OSError if that is not possible now.
    stop_seconds: time after SIGTERM until a child is killed.
    """

    def __init__(
        self,
        kind: str,
        start: Callable[[str], Started],
        *,
        stop_seconds: float = STOP_SECONDS,
    ) -> None:
        self._kind = kind
        self._start = start
        self._stop_seconds = stop_seconds
        self._wanted: dict[str, _Child] = {}
        self._leaving: dict[str, _Child] = {}

    @property
    def pids(self) -> dict[str, int]:
        """The ids of the running processes by name, except those that are stopping."""
        return {
            name: child.pid
            for name, child in self._wanted.items()
            if child.pid is not None
        }

    def keep(self, names: Collection[str]) -> None:
        """Run exactly the children with these names. Return at once.

        A child that has ended is restarted when its pause is over, so that this has to
        be called every TURN_SECONDS. A child whose name is missing is stopped.
        """
        now = time.monotonic()
        for name in self._wanted.keys() - set(names):
            self._leaving[name] = self._wanted.pop(name)
        self._stop_leaving(now)
        # A new process for a name must not run beside the one that is being stopped.
        for name in set(names) - self._leaving.keys():
            if name not in self._wanted:
                title, start = f"{self._kind} {name}", partial(self._start, name)
                self._wanted[name] = _Child(title, start)
            self._wanted[name].tend(now)

    def retry(self) -> None:
        """End the pauses of children that wait for their restart."""
        for child in self._wanted.values():
            child.retry()

    def stop(self) -> None:
        """Stop all children. Returns when they have ended, or have been killed."""
        self._leaving.update(self._wanted)
        self._wanted.clear()
        try:
            while self._stop_leaving(time.monotonic()):
                time.sleep(TURN_SECONDS / 10)
        finally:
            for child in self._leaving.values():
                child.kill()

    def _stop_leaving(self, now: float) -> bool:
        """Return whether any child is still being stopped."""
        for name, child in list(self._leaving.items()):
            if child.stop(now, self._stop_seconds):
                del self._leaving[name]
        return bool(self._leaving)


@contextmanager
def kept_running(children: Children, names: Collection[str]) -> Iterator[None]:
    """Run children during a `with` block. A thread restarts those that end."""
    leaving = threading.Event()

    def watch() -> None:
        try:
            while not leaving.is_set():
                children.keep(names)
                leaving.wait(TURN_SECONDS)
        finally:
            children.stop()

    thread = threading.Thread(target=watch, name="children")
    try:
        thread.start()
        yield
    finally:
        leaving.set()
        if thread.is_alive():
            thread.join()
