"""The real server under test: worker processes on a free port."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from urllib.parse import quote, urlencode

from django.db import connection

from server import supervisor


def test_database_url() -> str:
    """Return the URL of the test database, for other processes."""
    settings = connection.settings_dict
    login = quote(settings["USER"])
    if settings["PASSWORD"]:
        login += ":" + quote(settings["PASSWORD"], safe="")
    query = {"host": settings["HOST"], "port": settings["PORT"], **settings["OPTIONS"]}
    query = {
        name: value for name, value in query.items() if isinstance(value, str | int)
    }
    return f"postgresql://{login}@/{settings['NAME']}?{urlencode(query)}"


test_database_url.__test__ = False  # type: ignore[attr-defined]


@contextmanager
def run_service(
    workers: int = 1,
    env: Mapping[str, str] | None = None,
    *,
    drain_seconds: float = 0,
    with_metrics: bool = False,
    port: int = 0,
    application: str = "config.asgi:application",
) -> Iterator[supervisor.Server]:
    """Serve the test database in separate processes. Yield the server; see `.base_url`.

    They only see committed data, so that tests need `transactional_db`.
    env: additions to the environment.
    port: 0 for a free one.
    with_metrics: whether each worker has a socket among `.inner` for `/metrics`.
    """
    listeners = supervisor.listen("127.0.0.1", port, workers)
    count = workers if with_metrics else 0
    inner = [supervisor.listen("127.0.0.1", 0, 1)[0] for _ in range(count)]
    environ = {**os.environ, "DATABASE_URL": test_database_url(), **(env or {})}
    with supervisor.Server(
        listeners, environ, application, inner=inner, drain_seconds=drain_seconds
    ) as running:
        yield running
