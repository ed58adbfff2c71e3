"""What the commands that serve have in common."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import sys
from collections.abc import Mapping
from ipaddress import ip_address
from typing import NoReturn

from config import env, server

LOOPBACK = "127.0.0.1"

LEAVE_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

_PR_SET_PDEATHSIG = 1


class Doors:
    """The listening sockets that the environment asks for.

    host: the address that customers come to.
    Raises: ValueError, server.PortInUse, OSError.
    """

    def __init__(self, host: str) -> None:
        port = env.integer("PORT", 8000)
        workers = max(1, env.integer("WEB_CONCURRENCY", 1))
        self._drain_seconds = max(0, env.integer("DRAIN_SECONDS", 0))
        self.inner = _inner(workers)
        self.outer = server.listen(host, port, workers)

    def server(self, environ: Mapping[str, str]) -> server.Server:
        """Return the server on these sockets; `environ`: its workers' environment."""
        return server.Server(
            self.outer, environ, inner=self.inner, drain_seconds=self._drain_seconds
        )


def _inner(workers: int) -> list[socket.socket]:
    """Return a socket for each worker's metrics, on consecutive ports."""
    first = env.integer("METRICS_PORT", 0)
    if not first:
        return []
    host = env.text("METRICS_HOST", LOOPBACK)
    if not ip_address(host).is_loopback and not env.text("METRICS_TOKEN"):
        raise ValueError(f"METRICS_HOST {host} can be reached: set METRICS_TOKEN")
    return [server.listen(host, first + index, 1)[0] for index in range(workers)]


def leave_on_signals() -> None:
    """Unwind on the signals that end a service, so that everything is stopped."""
    for kind in LEAVE_ON:
        if kind != signal.SIGHUP or signal.getsignal(kind) != signal.SIG_IGN:
            signal.signal(kind, _leave)  # all but nohup's


def _leave(signal_number: int, frame: object) -> NoReturn:
    """Unwind; once is enough."""
    for kind in LEAVE_ON:
        signal.signal(kind, signal.SIG_IGN)
    sys.exit(0)


def leave_with_parent() -> None:
    """Have the kernel end us when `make` is killed, which can't pass that on."""
    if sys.platform == "linux":
        parent = os.getppid()
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != parent:
            sys.exit(0)
