"""Addresses of PostgreSQL and Redis, and the lifetime of the embedded ones.

With DATABASE_URL or REDIS_URL nothing is started for that service. Otherwise the address
depends on VAR_DIR only, so that all processes with the same VAR_DIR use the same server,
and `running()` keeps it running.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from config.embedded import places, postgres, redis
from config.embedded.errors import ServiceError
from config.embedded.keeper import restarting
from config.embedded.usage import usage
from config.variables import processes

__all__ = [
    "ServiceError",
    "child_environment",
    "database_url",
    "redis_url",
    "running",
    "with_pool",
]

POOL_TIMEOUT_SECONDS = 5.0
"""How long a thread waits for a connection of the pool, such as during an outage."""

POOL_RECONNECT_SECONDS = 1.0
"""Time after which the pool gives up an attempt to connect; the next request begins another.
The pool's own pauses double with each attempt, so that after an outage of two minutes
pages would fail for two minutes more."""

POOL_IDLE_SECONDS = 60.0
"""Time after which an unused connection of the pool is closed."""


def database_url() -> str:
    """Return DATABASE_URL, or the address of the embedded PostgreSQL."""
    return processes.DATABASE_URL.value() or postgres.address(processes.var_dir())


def redis_url() -> str:
    """Return REDIS_URL, or the address of the embedded Redis."""
    return processes.REDIS_URL.value() or redis.address(processes.var_dir())


def child_environment() -> dict[str, str]:
    """Return our environment with the addresses of PostgreSQL and Redis.

    A command with this environment uses the embedded services without keeping them
    running. Otherwise the last child of a killed process would stop them.
    """
    addresses = {"DATABASE_URL": database_url(), "REDIS_URL": redis_url()}
    return {**os.environ, **addresses}


def with_pool(database: dict[str, Any], size: int) -> dict[str, Any]:
    """Return an entry of Django's DATABASES whose connections come from a pool.

    Opening a connection costs more than the queries of most pages: PostgreSQL starts a
    process for it, which reads its catalogues again for the first query of each table.
    size: maximum number of connections in the process. With 0, there is no pool, and
        `database` is returned unchanged.
    Source: https://docs.djangoproject.com/en/5.2/ref/databases/#connection-pool
    """
    if not size:
        return database
    pool = {
        "min_size": 0,
        "max_size": size,
        "timeout": POOL_TIMEOUT_SECONDS,
        "reconnect_timeout": POOL_RECONNECT_SECONDS,
        "max_idle": POOL_IDLE_SECONDS,
    }
    return {
        **database,
        "CONN_HEALTH_CHECKS": True,  # replaces a connection that was lost in the pool
        "OPTIONS": {**database["OPTIONS"], "pool": pool},
    }


@contextmanager
def running(var_dir: Path | None = None, *, restart: bool = False) -> Iterator[None]:
    """Keep the embedded services running during a `with` block.

    A running service is used, and another one is started. The last process that uses a
    service stops it. A service with a configured address is neither started nor stopped.
    restart: start services again that die during the block.
    Raises: ServiceError if a service can't be started.
    """
    var_dir = var_dir or processes.var_dir()
    servers: list[postgres.PostgresServer | redis.RedisServer] = []
    if not processes.DATABASE_URL.value():
        servers.append(postgres.PostgresServer(var_dir))
    if not processes.REDIS_URL.value():
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

    with (
        usage(var_dir, start, stop),
        # Redis first: PostgreSQL may have to recover for minutes, or be unable to start.
        restarting(var_dir, servers[::-1]) if restart else nullcontext(),
    ):
        yield
