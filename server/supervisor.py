"""The server: worker processes on one address, restarted by a supervisor."""

from __future__ import annotations

import errno
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import TracebackType

from server import forking
from server.forking import ForkServer
from server.heartbeat import TURN_SECONDS, Pulse, TurnClock
from server.worker import GRACE_SECONDS

logger = logging.getLogger(__name__)

START_PATIENCE_SECONDS = 60

RETRY_SECONDS = 1.0
"""Pause before the next attempt to replace a worker."""

HANG_SECONDS = 5.0
"""Longest time without a heartbeat: ten intervals. No work of a worker blocks the event
loop for a tenth of that."""

KILL_SECONDS = 2.0
"""Timeout of waiting for the exit of a killed process."""


class PortInUse(Exception):
    """Raised when another program listens on the address."""

    def __init__(self, host: str, port: int) -> None:
        super().__init__(f"{host}:{port} is in use: choose another PORT")


class Listener(socket.socket):
    """A socket with an address, on which a worker listens as soon as it can answer.

    The kernel refuses connections until then. A proxy or client can therefore try
    another address at once, instead of waiting for a process that is starting.
    """

    claim: socket.socket | None = None
    """A socket that reserves the address until a worker listens."""

    def close(self) -> None:
        """Release the address."""
        super().close()
        if self.claim is not None:
            self.claim.close()


class WorkerFailed(Exception):
    """Raised when a worker does not start to serve. Its own log contains the reason."""


def listen(host: str, port: int, count: int) -> list[socket.socket]:
    """Return one socket for each worker to listen on, all of the same address.

    port: 0 lets the kernel choose.

    The kernel distributes the connections over the sockets. With a single socket, most
    connections would go to one worker.

    Raises: PortInUse; ValueError for an invalid port; OSError, such as for a host that
        is not this machine.
    """
    if not 0 <= port <= 65535:
        raise ValueError(f"invalid port {port}: the highest is 65535")
    try:
        # Exclusive, so that two servers never share a port by accident.
        first = _bound(host, port, shared=False)
        if count == 1:
            return [first]
        port = first.getsockname()[1]
        # The claim stays reserved, so that no other server can take the port now.
        claim, first.claim = first.claim, None
        first.close()
        sockets = [_bound(host, port, shared=True) for _ in range(count)]
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        raise PortInUse(host, port) from error
    sockets[0].claim = claim
    return list(sockets)


def _claim(host: str, port: int) -> socket.socket | None:
    """Reserve an address with an abstract Unix socket, which the kernel releases.

    Binding the address itself does not exclude other servers: `SO_REUSEADDR`, which a
    restarted server needs, lets all of them bind until one listens.

    Raises: OSError.
    """
    if sys.platform != "linux":
        return None
    claim = socket.socket(socket.AF_UNIX)
    try:
        claim.bind(f"\0portcullis/{host}:{port}")
    except OSError:
        claim.close()
        raise
    return claim


def _bound(host: str, port: int, *, shared: bool) -> Listener:
    listener = Listener(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.bind((host, port))
        if not shared:
            listener.claim = _claim(*listener.getsockname())
    except OSError:
        listener.close()
        raise
    return listener


class _Process:
    """One worker process, with the pipe that ends it and the pipe for its heartbeats."""

    def __init__(
        self,
        application: str,
        drain_seconds: float,
        environ: Mapping[str, str] | None,
        listeners: Sequence[socket.socket],
        forks: ForkServer,
    ) -> None:
        """Start the process. Raises: OSError."""
        pulse, pulse_write = os.pipe()
        try:
            self.forked = forks.start(
                "server.worker:main",
                application,
                drain_seconds,
                descriptors=[pulse_write, *(one.fileno() for one in listeners)],
                environ=environ,
                title="server.worker",
            )
        except OSError:
            os.close(pulse)
            raise
        finally:
            os.close(pulse_write)
        self.pulse = Pulse(pulse)
        self._is_closed = False

    def complaint(self, passed_seconds: float, hang_seconds: float) -> str | None:
        """Return the reason for replacing the process, or None.

        passed_seconds: since the last call.
        hang_seconds: longest time without a heartbeat; 0: no limit.
        """
        self.pulse.read(passed_seconds)
        silent_seconds = self.pulse.silent_seconds
        if self.forked.poll() is not None:
            is_early = "" if self.pulse.has_begun else " while it was starting"
            return f"ended{is_early} (status {self.forked.returncode})"
        if not self.pulse.has_begun:
            is_late = silent_seconds > START_PATIENCE_SECONDS
            return (
                f"did not serve within {START_PATIENCE_SECONDS} s" if is_late else None
            )
        if 0 < hang_seconds < silent_seconds:
            return f"hangs: no heartbeat for {silent_seconds:.1f} s"
        return None

    def kill(self) -> None:
        """End the process if it runs, and close its pipes."""
        self.forked.kill()
        with suppress(subprocess.TimeoutExpired):  # the process is blocked by disk I/O
            self.forked.wait(KILL_SECONDS)
        self.close()

    def close(self) -> None:
        """Close our ends of the process's pipes."""
        if not self._is_closed:
            self._is_closed = True
            self.pulse.close()


class Server:
    """One worker for each socket, for the duration of a `with` block.

    environ: the workers' environment; None for ours.
    application: an ASGI application with a lifespan.
    inner: a socket for each worker, for requests of operators to this process.
    drain_seconds: how long workers still accept requests after SIGTERM.
    hang_seconds: time without a heartbeat after which a worker is replaced; 0: never.
    forks: forks the workers.

    Raises: WorkerFailed if a worker does not start.
    """

    def __init__(
        self,
        listeners: list[socket.socket],
        environ: Mapping[str, str] | None = None,
        application: str = "config.asgi:application",
        *,
        inner: Sequence[socket.socket] = (),
        drain_seconds: float = 0,
        hang_seconds: float = HANG_SECONDS,
        forks: ForkServer = forking.shared,
    ) -> None:
        self.listeners = listeners
        self.inner = inner
        host, port = listeners[0].getsockname()
        self.base_url = f"http://{host}:{port}"
        self._environ = None if environ is None else dict(environ)
        self._drain_seconds = drain_seconds
        self._hang_seconds = hang_seconds
        self._application = application
        self._forks = forks
        self._leaving = threading.Event()
        self._workers: list[_Process | None] = []
        """Workers by socket; None if a worker could not be started."""

    @property
    def pids(self) -> list[int]:
        """Return the workers' process ids."""
        return [worker.forked.pid for worker in self._workers if worker is not None]

    def __enter__(self) -> Server:
        """Start the workers, and wait until all of them serve."""
        clock = TurnClock()
        try:
            for index in range(len(self.listeners)):
                self._workers.append(self._start(index))
            while not self._all_serve(clock.turn()):
                time.sleep(0.01)
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop the workers."""
        self.stop()

    def supervise(self) -> None:
        """Replace workers that end or hang, until `leave` is called.

        The sockets stay open, so that no connection is refused. If a worker can't be
        replaced now, for example for lack of memory, the start is repeated later.
        """
        clock = TurnClock()
        while not self._leaving.wait(TURN_SECONDS):
            passed_seconds = clock.turn()
            for index, worker in enumerate(self._workers):
                if worker is None:
                    self._replace(index)
                    continue
                complaint = worker.complaint(passed_seconds, self._hang_seconds)
                if complaint is not None:
                    self._give_up(worker, complaint)
                    self._replace(index)

    def _all_serve(self, passed_seconds: float) -> bool:
        """Return whether all workers have started. Raises: WorkerFailed."""
        are_all_up = True
        for worker in self._workers:
            assert worker is not None
            complaint = worker.complaint(passed_seconds, 0)
            if complaint is not None:
                raise WorkerFailed(f"a worker process {complaint}")
            are_all_up &= worker.pulse.has_begun
        return are_all_up

    def _give_up(self, worker: _Process, complaint: str) -> None:
        """End a worker that is to be replaced, and report why."""
        pid, was_serving = worker.forked.pid, worker.pulse.has_begun
        worker.kill()
        if was_serving:
            logger.error("worker %s %s, another takes over", pid, complaint)
        else:
            logger.error("no worker took over: worker %s %s", pid, complaint)
            self._leaving.wait(RETRY_SECONDS)

    def _replace(self, index: int) -> None:
        """Start a worker in place of one that has ended."""
        try:
            self._workers[index] = self._start(index)
        except OSError as error:
            self._workers[index] = None
            logger.error("no worker took over: %s", error)
            self._leaving.wait(RETRY_SECONDS)

    def leave(self) -> None:
        """Let `supervise` return. The workers go on until `stop`."""
        self._leaving.set()

    def stop(self) -> None:
        """Stop the workers. Kill those that exceed their grace period."""
        workers = [worker for worker in self._workers if worker is not None]
        for worker in workers:
            worker.forked.send_signal(signal.SIGTERM)
        # Otherwise the kernel would still accept connections after the workers have
        # closed their sockets, and no process would answer them.
        for listener in [*self.listeners, *self.inner]:
            listener.close()
        deadline = time.monotonic() + self._drain_seconds + GRACE_SECONDS + 2
        for worker in workers:
            with suppress(subprocess.TimeoutExpired):
                worker.forked.wait(max(0.1, deadline - time.monotonic()))
            worker.kill()

    def _start(self, index: int) -> _Process:
        """Start one worker. Raises: OSError."""
        listeners = [self.listeners[index], *self.inner[index : index + 1]]
        return _Process(
            self._application,
            self._drain_seconds,
            self._environ,
            listeners,
            self._forks,
        )
