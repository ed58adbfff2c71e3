"""A worker's HTTP protocol that listens on a socket."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.applications import Answering
from tests.support.served import Served, served


@pytest.fixture
def application() -> Answering:
    return Answering()


@pytest.fixture
def connect(
    monkeypatch: pytest.MonkeyPatch, application: Answering
) -> Iterator[Served]:
    with served(monkeypatch, application) as connect:
        yield connect
