"""Restart embedded services that die while this process uses them.

Each process that uses the services watches them itself. A restart holds the lock for
starting and stopping services (`config.embedded.usage`). If several processes detect
the same failure, the first one restarts the service and the others find it running.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from config.embedded.usage import alone

logger = logging.getLogger(__name__)

CHECK_SECONDS = 0.25
"""Pause between two checks. A check reads a file and connects to a socket."""

RETRY_SECONDS = 1.0
"""Pause after a failed restart."""

REPORT_SECONDS = 60.0
"""Time between two log lines about restarts that fail."""


class EmbeddedServer(Protocol):
    """Interface of a server that can be watched."""

    @property
    def name(self) -> str:
        """The server's name in the log."""

    def is_running(self) -> bool:
        """Return whether the server's process is alive."""

    def start(self) -> None:
        """Start the server if it does not run. Return when it accepts connections."""


@contextmanager
def restarting(var_dir: Path, servers: Sequence[EmbeddedServer]) -> Iterator[None]:
    """Restart servers that die during a `with` block.

    servers: checked in this order, so those with the shortest start come first.

    The caller has to be a user of the services, see `config.embedded.usage`.
    """
    leaving = threading.Event()
    watcher = threading.Thread(
        target=_watch, args=(var_dir, servers, leaving), name="embedded", daemon=True
    )
    watcher.start()
    try:
        yield
    finally:
        leaving.set()
        watcher.join()  # a server must not be started while it is being stopped


def _watch(
    var_dir: Path, servers: Sequence[EmbeddedServer], leaving: threading.Event
) -> None:
    watched = [_Watched(server) for server in servers]
    pause = CHECK_SECONDS
    while not leaving.wait(pause):
        pause = CHECK_SECONDS
        for one in watched:
            try:
                if not one.server.is_running():
                    with alone(var_dir):
                        one.restart()
            except Exception as error:  # the next attempt may succeed
                one.report(error)
                pause = RETRY_SECONDS


class _Watched:
    """A server, and the last message that was logged about it."""

    def __init__(self, server: EmbeddedServer) -> None:
        self.server = server
        self._is_dead = False
        self._next_report = 0.0

    def restart(self) -> None:
        """Start the server, unless another process has done so."""
        if self.server.is_running():
            self._is_dead = False
            return
        if not self._is_dead:
            self._is_dead = True
            logger.error(
                "the embedded %s has exited and is restarted", self.server.name
            )
        self.server.start()
        self._is_dead = False
        logger.warning("the embedded %s is running again", self.server.name)

    def report(self, error: Exception) -> None:
        """Log that the server can't be started, once a minute."""
        now = time.monotonic()
        if now >= self._next_report:
            self._next_report = now + REPORT_SECONDS
            logger.error(
                "the embedded %s can't be restarted: %s", self.server.name, error
            )
