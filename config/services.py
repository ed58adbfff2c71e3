"""The database and the Redis that the project talks to, and the embedded ones.

An address given in the environment (DATABASE_URL, REDIS_URL) wins, and nothing is
started for it. Otherwise it follows from VAR_DIR alone, so that every process with
the same VAR_DIR means the same server, and `running()` keeps that server up.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote

from config import env
from config.embedded import places, postgres, redis
from config.embedded.errors import ServiceError
from config.embedded.usage import usage

__all__ = [
    "ServiceError",
    "database_url",
    "parse_database_url",
    "redis_url",
    "running",
]


def database_url() -> str:
    """Return the address of the database: DATABASE_URL, else the embedded one's."""
    return env.text("DATABASE_URL") or postgres.address(env.var_dir())


def redis_url() -> str:
    """Return the address of Redis: REDIS_URL, else the embedded one's."""
    return env.text("REDIS_URL") or redis.address(env.var_dir())


def parse_database_url(url: str) -> dict[str, Any]:
    """Return the entry of Django's DATABASES for a PostgreSQL URL.

    url: postgresql://user:password@host:port/name?option=value, each part
        percent-encoded; a host that begins with / is a folder of unix sockets.
        Options are libpq's (sslmode, connect_timeout, …); `host` and `port` may
        stand among them.
    Raises: ValueError saying what is wrong, without showing the URL's password.
    Source: https://www.postgresql.org/docs/current/libpq-connect.html 32.1.1.2
    """
    scheme, separator, rest = url.partition("://")
    if not separator or scheme not in {"postgres", "postgresql"}:
        raise ValueError("DATABASE_URL must begin with postgres:// or postgresql://")
    rest, _, query = rest.partition("?")
    authority, _, name = rest.partition("/")
    credentials, _, location = authority.rpartition("@")
    user, _, password = credentials.partition(":")
    host, port = _split_location(location)
    options = dict(parse_qsl(query, keep_blank_values=True))
    if not name:
        raise ValueError("DATABASE_URL names no database: postgres://host/name")
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(name),
        "USER": unquote(user),
        "PASSWORD": unquote(password),
        "HOST": options.pop("host", unquote(host)),
        "PORT": options.pop("port", port),
        "OPTIONS": options,
    }


@contextmanager
def running(var_dir: Path | None = None) -> Iterator[None]:
    """Keep the embedded services up for the time of a `with` block.

    What runs already is used; what does not is started, and stopped by whoever
    is the last to leave. A service whose address was given is left alone.
    Raises: ServiceError when a service can't be started.
    """
    var_dir = var_dir or env.var_dir()
    servers: list[postgres.PostgresServer | redis.RedisServer] = []
    if not env.text("DATABASE_URL"):
        servers.append(postgres.PostgresServer(var_dir))
    if not env.text("REDIS_URL"):
        servers.append(redis.RedisServer(var_dir))
    if not servers:
        yield
        return

    def start() -> None:
        for server in servers:
            server.start()

    def stop() -> None:
        for server in reversed(servers):
            server.stop()
        places.forget_socket_dir(var_dir)

    with usage(var_dir, start, stop):
        yield


def _split_location(location: str) -> tuple[str, str]:
    """Split host and port; an IPv6 address stands in brackets."""
    if location.startswith("["):
        host, _, port = location[1:].partition("]")
        port = port.removeprefix(":")
    else:
        host, _, port = location.partition(":")
    if port and not port.isdecimal():
        raise ValueError(f"the port in DATABASE_URL must be a number, not {port!r}")
    return host, port
