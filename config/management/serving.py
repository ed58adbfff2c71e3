"""Functions shared by the commands that serve."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import sys
import threading
from collections.abc import Mapping
from typing import NoReturn

from config.variables import operation, processes
from server import supervisor

LOOPBACK = "127.0.0.1"

LEAVE_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

_PR_SET_PDEATHSIG = 1


class ListeningSockets:
    """The listening sockets configured by the environment.

    host: the address for customers.

    Raises: ValueError; supervisor.PortInUse; OSError for a port that needs root.
    """

    def __init__(self, host: str) -> None:
        port = processes.PORT.value()
        workers = processes.WEB_CONCURRENCY.value()
        self._drain_seconds = processes.DRAIN_SECONDS.value()
        self._hang_seconds = processes.WORKER_TIMEOUT_SECONDS.value()
        self.inner = _inner(workers)
        self.outer = _listen("HOST", host, port, workers)

    @property
    def base_url(self) -> str:
        """The URL of the service, for clients on this machine."""
        host, port = self.outer[0].getsockname()
        return f"http://{host}:{port}"

    @property
    def port(self) -> int:
        """The port for customers. The kernel has chosen it if PORT is 0."""
        port: int = self.outer[0].getsockname()[1]
        return port

    def server(self, environ: Mapping[str, str]) -> supervisor.Server:
        """Return the server on these sockets. environ: environment of its workers."""
        return supervisor.Server(
            self.outer,
            environ,
            inner=self.inner,
            drain_seconds=self._drain_seconds,
            hang_seconds=self._hang_seconds,
        )


def _inner(workers: int) -> list[socket.socket]:
    """Return a socket for each worker's metrics, on consecutive ports."""
    first = operation.METRICS_PORT.value()
    if not first:
        return []
    for problem in operation.open_metrics():
        raise ValueError(problem)
    host = operation.METRICS_HOST.value()
    return [
        _listen("METRICS_HOST", host, first + index, 1)[0] for index in range(workers)
    ]


def _listen(setting: str, host: str, port: int, count: int) -> list[socket.socket]:
    """Return sockets on an address. setting: name of the setting that contains the host.

    Raises: ValueError with the setting's name; supervisor.PortInUse; PermissionError.
    """
    try:
        return supervisor.listen(host, port, count)
    except PermissionError:
        raise
    except OSError as error:
        raise ValueError(
            f"{setting} {host} is not an address of this machine: {error.strerror}"
        ) from error


def leave_on_signals() -> None:
    """Unwind on the signals that end a service, so that everything is stopped."""
    for kind in LEAVE_ON:
        if kind != signal.SIGHUP or signal.getsignal(kind) != signal.SIG_IGN:
            signal.signal(kind, _leave)  # except SIGHUP if nohup ignores it


def _leave(signal_number: int, frame: object) -> NoReturn:
    """Exit on the first signal, and ignore further ones."""
    for kind in LEAVE_ON:
        signal.signal(kind, signal.SIG_IGN)
    sys.exit(0)


def stop_on_signals() -> threading.Event:
    """Return an event that is set by the signals that end a service.

    A thread waits for them, because a signal handler must not call `Event.set`: the
    interrupted `Event.wait` may hold the lock. Call this before other threads start,
    which inherit that the signals are blocked.
    """
    stop = threading.Event()
    signal.pthread_sigmask(signal.SIG_BLOCK, LEAVE_ON)

    def wait() -> None:
        signal.sigwait(LEAVE_ON)
        stop.set()

    threading.Thread(target=wait, name="signals", daemon=True).start()
    return stop


def leave_with_parent() -> None:
    """Let the kernel end this process when its parent (`make`) is killed."""
    if sys.platform == "linux":
        parent = os.getppid()
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != parent:
            sys.exit(0)
