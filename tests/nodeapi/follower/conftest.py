"""Simulated nodes for the tests of the follower."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from nodeapi.follower import follower, health, pool, status, watcher
from samples.builder import ChainBuilder
from tests.support.simulator import Simulator, simulator
from tests.support.waiting import PATIENCE_SECONDS

StartNode = Callable[[ChainBuilder], Simulator]


@pytest.fixture
def start_node(frequent: None) -> Iterator[StartNode]:
    """Yield a function that runs a node with a chain until the end of the test."""
    with ExitStack() as stack:
        yield lambda chain: stack.enter_context(simulator(chain))


@pytest.fixture(autouse=True)
def collectable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prevent the follower from changing this process's garbage collector."""
    monkeypatch.setattr(gc, "freeze", lambda: None)
    monkeypatch.setattr(gc, "set_threshold", lambda *_: None)


@pytest.fixture
def frequent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the intervals of the follower, whose results the tests wait for."""
    monkeypatch.setattr(follower, "HOUSEKEEPING_SECONDS", 0.1)
    monkeypatch.setattr(health, "LONGEST_POLL_SECONDS", health.SHORTEST_POLL_SECONDS)
    monkeypatch.setattr(status, "WRITE_SECONDS", 0.1)
    monkeypatch.setattr(watcher, "EXCLUDED_SECONDS", 0.5)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep a slow machine from making the follower ask a second upstream for a block.

    For tests that count such requests, or that expect a certain error.
    """
    monkeypatch.setattr(pool, "FETCH_SECONDS", PATIENCE_SECONDS)
