"""The server: worker processes on one address, kept alive by their supervisor."""

from __future__ import annotations

import logging
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from types import TracebackType

from config import env
from config.worker import GRACE_SECONDS

logger = logging.getLogger(__name__)

START_PATIENCE_SECONDS = 60

RETRY_SECONDS = 1.0
"""Pause after a worker that could not be replaced."""

STALL_SECONDS = 300
"""How long a client may take nothing of what is sent to it; then its connection is cut.

The kernel looks, for it alone knows what has arrived: a slow reader at work may leave
all the buffers on our side full for minutes.
"""


class PortInUse(Exception):
    """Raised when another program listens on the address."""

    def __init__(self, host: str, port: int) -> None:
        super().__init__(f"{host}:{port} is in use: choose another PORT")


class Listener(socket.socket):
    """A socket of an address on which a worker listens as soon as it can answer.

    The kernel refuses connections until then, so that a proxy or a client with another
    address to try does so at once, instead of waiting for a process that still starts.
    """

    claim: socket.socket | None = None
    """What keeps other servers off an address on which nobody listens yet."""

    def close(self) -> None:
        """Let go of the address."""
        super().close()
        if self.claim is not None:
            self.claim.close()


class WorkerFailed(Exception):
    """Raised when a worker does not come to serve; its own log says why."""


def listen(host: str, port: int, count: int) -> list[socket.socket]:
    """Return one socket for each worker to listen on, all of the same address.

    port: 0 lets the kernel choose.
    The kernel spreads the connections over the sockets. One socket for all would
    hand most of them to whichever worker is awake first.
    Raises: PortInUse; ValueError for what is no port.
    """
    if not 0 <= port <= 65535:
        raise ValueError(f"there is no port {port}, the last one is 65535")
    try:
        # Exclusive, so that nobody shares the port of another run by accident.
        first = _bound(host, port, shared=False)
        if count == 1:
            return [first]
        port = first.getsockname()[1]
        # Its claim stays, so that nobody else comes in between.
        claim, first.claim = first.claim, None
        first.close()
        sockets = [_bound(host, port, shared=True) for _ in range(count)]
    except PermissionError:
        raise
    except OSError as error:
        raise PortInUse(host, port) from error
    sockets[0].claim = claim
    return list(sockets)


def _claim(host: str, port: int) -> socket.socket | None:
    """Take an address's name among those that the kernel frees with the process.

    To be bound to an address keeps nobody off it: `SO_REUSEADDR`, which a server needs
    that starts again, lets all in until one listens.
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
        if hasattr(socket, "TCP_USER_TIMEOUT"):  # of Linux; connections inherit it
            milliseconds = int(1000 * STALL_SECONDS)
            listener.setsockopt(
                socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, milliseconds
            )
        listener.bind((host, port))
        if not shared:
            listener.claim = _claim(*listener.getsockname())
    except OSError:
        listener.close()
        raise
    return listener


class Server:
    """As many workers as there are sockets, for the time of a `with` block.

    environ: the workers' environment, ours when None.
    application: what they serve, an ASGI application with a lifespan.
    inner: a socket for each worker on which operators may ask that very process.
    drain_seconds: how long workers still take requests when they are to stop.
    Raises: WorkerFailed when a worker does not come up.
    """

    def __init__(
        self,
        listeners: list[socket.socket],
        environ: Mapping[str, str] | None = None,
        application: str = "config.asgi:application",
        *,
        inner: Sequence[socket.socket] = (),
        drain_seconds: float = 0,
    ) -> None:
        self.listeners = listeners
        self.inner = inner
        host, port = listeners[0].getsockname()
        self.base_url = f"http://{host}:{port}"
        self._environ = dict(os.environ if environ is None else environ)
        self._drain_seconds = drain_seconds
        self._command = [
            *(sys.executable, "-m", "config.worker"),
            *(application, str(drain_seconds)),
        ]
        self._leaving = threading.Event()
        self._workers: list[subprocess.Popen[bytes]] = []

    @property
    def pids(self) -> list[int]:
        """Return the workers' process ids."""
        return [worker.pid for worker in self._workers]

    def __enter__(self) -> Server:
        """Start the workers and wait until every one of them serves."""
        try:
            signals = [self._start(index) for index in range(len(self.listeners))]
            for ready in signals:
                _wait(ready)
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
        """Replace workers that end, until told to leave.

        The sockets stay open meanwhile, so that no connection is refused. One that
        can't be replaced now, as while the machine lacks memory, is tried again: the
        others go on.
        """
        while not self._leaving.wait(0.2):
            for index, worker in enumerate(self._workers):
                if worker.poll() is not None:
                    logger.error("worker %s ended, another takes over", worker.pid)
                    _close_lifeline(worker)
                    self._replace(index)

    def _replace(self, index: int) -> None:
        """Start another worker in the place of one that has ended."""
        try:
            _wait(self._start(index))
        except (WorkerFailed, OSError) as error:
            logger.error("no worker took over: %s", error)
            self._workers[index].kill()  # if it is there, and does not serve
            self._workers[index].wait()
            self._leaving.wait(RETRY_SECONDS)

    def leave(self) -> None:
        """Have `supervise` return."""
        self._leaving.set()

    def stop(self) -> None:
        """Stop the workers, at once those that do not within their grace."""
        for worker in self._workers:
            worker.send_signal(signal.SIGTERM)
        # With ours open the kernel would go on taking connections that nobody answers
        # once the workers have closed theirs; so clients try elsewhere.
        for listener in [*self.listeners, *self.inner]:
            listener.close()
        deadline = time.monotonic() + self._drain_seconds + GRACE_SECONDS + 2
        for worker in self._workers:
            try:
                worker.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                worker.kill()
                worker.wait()
            _close_lifeline(worker)

    def _start(self, index: int) -> int:
        """Start one worker; returns the pipe on which it says that it serves."""
        listeners = [self.listeners[index], *self.inner[index : index + 1]]
        ready, ready_write = os.pipe()
        inherited = [ready_write, *(listener.fileno() for listener in listeners)]
        try:
            worker = subprocess.Popen(
                [*self._command, *map(str, inherited)],
                cwd=env.BASE_DIR,
                env=self._environ,
                stdin=subprocess.PIPE,
                pass_fds=inherited,
            )
        except OSError:
            os.close(ready)
            raise
        finally:
            os.close(ready_write)
        self._workers[index : index + 1] = [worker]
        return ready


def _wait(ready: int) -> None:
    """Wait for a worker's word that it serves; an empty one means that it ended."""
    try:
        if not select.select([ready], [], [], START_PATIENCE_SECONDS)[0]:
            raise WorkerFailed(
                f"a worker process did not serve within {START_PATIENCE_SECONDS} s"
            )
        if not os.read(ready, 1):
            raise WorkerFailed("a worker process ended while it was starting")
    finally:
        os.close(ready)


def _close_lifeline(worker: subprocess.Popen[bytes]) -> None:
    if worker.stdin is not None:
        worker.stdin.close()
