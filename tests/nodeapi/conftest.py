"""The service with the sample chain, and the queries of a service in this process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from postgres.connection import Connection
from postgres.statement import Statement
from tests.support import copies
from tests.support.live import Api, Live, live_service


@pytest.fixture(scope="module")
def live(module_db: None) -> Iterator[Live]:
    """Serve the sample chain."""
    copies.sample_chain()
    with live_service() as live:
        yield live


@pytest.fixture(scope="module")
def api(live: Live) -> Iterator[Api]:
    """Return a client whose key may trace."""
    with live.api(key=live.new_key(may_trace=True)) as api:
        yield api


@pytest.fixture
def queries(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Return a list of the SQL that is executed from now on."""
    found: list[bytes] = []
    execute = Connection.execute

    def counted(connection: Connection, statement: Statement, *rest: Any) -> None:
        found.append(statement.sql)
        execute(connection, statement, *rest)

    monkeypatch.setattr(Connection, "execute", counted)
    return found
