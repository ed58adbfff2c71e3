"""System checks of unsuitable databases."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import psycopg
import pytest

from config import services
from config.checks import check_default_network
from tests.support import commands
from tests.support.rows import make_network


@pytest.fixture
def bytes_url(running_services: None) -> Iterator[str]:
    """Return the URL of a database with encoding SQL_ASCII, the default of locale C."""
    url, name = services.database_url(), f"bytes_{uuid4().hex}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            f"CREATE DATABASE {name} ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0"
        )
        yield f"{url.rpartition('/')[0]}/{name}"
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def test_database_of_bytes_is_refused_before_anything_is_made(bytes_url: str) -> None:
    environ = {"DATABASE_URL": bytes_url}
    done = commands.run("migrate", "--no-input", environ=environ)
    assert done.returncode != 0
    assert "config.E001" in done.stderr
    assert "encoding is SQL_ASCII" in done.stderr
    with psycopg.connect(bytes_url) as connection:
        tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"
        assert connection.execute(tables).fetchone() == (0,)


@pytest.mark.django_db
def test_default_network_that_does_not_exist_is_reported(monkeypatch) -> None:
    make_network("main")
    monkeypatch.setenv("DEFAULT_NETWORK", "mian")
    (found,) = check_default_network(["default"])
    assert (found.id, found.msg) == (
        "config.W002",
        "DEFAULT_NETWORK mian is not the slug of a network.",
    )
    monkeypatch.setenv("DEFAULT_NETWORK", "main")
    assert check_default_network(["default"]) == []
