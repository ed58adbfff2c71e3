"""Processes, the databases that they use, and where they write."""

from __future__ import annotations

from pathlib import Path

from config.database_url import database_address
from config.env import BASE_DIR, Group, boolean, count, size, text
from config.setting_types import host, port, redis_address, slug

SERVICES = Group("Processes and services")

HOST = SERVICES.variable(
    "HOST", host, "127.0.0.1", "Address on which `manage.py web` listens."
)

PORT = SERVICES.variable("PORT", port, 8000, "TCP port for all HTTP requests.")

WEB_CONCURRENCY = SERVICES.variable(
    "WEB_CONCURRENCY",
    count,
    1,
    "Number of worker processes. Use one per processor core.",
)

VAR_DIR = SERVICES.variable(
    "VAR_DIR",
    text,
    str(BASE_DIR / "var"),
    "Folder for all files that the service writes, the embedded databases included.",
    "`var` in the clone",
)

DATABASE_URL = SERVICES.variable(
    "DATABASE_URL",
    database_address,
    "",
    "PostgreSQL: `postgres://user:password@host:port/name?sslmode=…`,"
    " with percent-encoded parts.",
    "embedded PostgreSQL",
)

DATABASE_POOL = SERVICES.variable(
    "DATABASE_POOL",
    size,
    0,
    "Connections to PostgreSQL that the threads of one process share."
    " 0: each thread opens its own.",
    "16 in workers, 0 in commands",
)

REDIS_URL = SERVICES.variable(
    "REDIS_URL",
    redis_address,
    "",
    "Redis: `redis://…`, `rediss://…` or `unix://…`. With Sentinels:"
    " `redis+sentinel://user:password@host:26379,host:26379/master/0` or"
    " `rediss+sentinel://…`; the options `sentinel_username` and `sentinel_password` are"
    " those of the Sentinels.",
    "embedded Redis",
)

DEFAULT_NETWORK = SERVICES.variable(
    "DEFAULT_NETWORK",
    slug,
    "",
    "Slug of the network at `/v3` on hosts that belong to no network.",
    "the network that was created first",
)

FOLLOW = SERVICES.variable(
    "FOLLOW",
    boolean,
    True,
    "Whether `manage.py serve` runs `manage.py follow` as well, which imports new blocks"
    " from the networks' upstreams. `manage.py web` never does.",
)

DRAIN_SECONDS = SERVICES.variable(
    "DRAIN_SECONDS",
    size,
    0,
    "Seconds for which a worker accepts requests after SIGTERM, while `/readyz` answers"
    " 503, so that load balancers stop using the worker.",
)

WORKER_TIMEOUT_SECONDS = SERVICES.variable(
    "WORKER_TIMEOUT_SECONDS",
    size,
    5,
    "Seconds without a heartbeat after which a worker process is replaced. 0: never.",
)


def var_dir() -> Path:
    """Return the folder for all files that the service writes: VAR_DIR."""
    return Path(VAR_DIR.value()).resolve()
