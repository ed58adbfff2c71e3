"""Restart embedded services that die while this process uses them.

Each process that uses the services watches them itself. A restart holds the lock for
starting and stopping services (`config.embedded.usage`). If several processes detect
the same failure, the first one restarts the service and the others find it running.
"""

from __future__ import annotations

import logging
import threading
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
        watcher.join()  # it must not start a server while that is being stopped


def _watch(
    var_dir: Path, servers: Sequence[EmbeddedServer], leaving: threading.Event
) -> None:
    pause = CHECK_SECONDS
    while not leaving.wait(pause):
        pause = CHECK_SECONDS
        for server in servers:
            try:
                if not server.is_running():
                    with alone(var_dir):
                        _restart(server)
            except Exception as error:  # whatever it is, the next attempt may succeed
                logger.error("an embedded service can't be restarted: %s", error)
                pause = RETRY_SECONDS


def _restart(server: EmbeddedServer) -> None:
    if server.is_running():
        return
    logger.error("the embedded %s has died, restarting it", server.name)
    server.start()
    logger.warning("the embedded %s is running again", server.name)
