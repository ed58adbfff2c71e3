from __future__ import annotations

from collections.abc import Iterator

import pytest

from nodeapi.relay import relay
from samples.builder import ChainBuilder
from tests.nodeapi.relay.node import ALICE, GENESIS, Node, followed
from tests.support import chains, copies


@pytest.fixture
def blocks() -> ChainBuilder:
    """Return a chain of two blocks in Osaka, the second one with a transaction."""
    builder = ChainBuilder(GENESIS)
    builder.block()
    builder.send(ALICE, ALICE.address, value=1)
    builder.block()

    def import_chains() -> None:
        for slug in ("live", "files"):
            chains.import_blocks(slug, GENESIS, builder.blocks)

    copies.once("networks of the relay", import_chains)
    return builder


@pytest.fixture
def node(blocks: ChainBuilder, monkeypatch: pytest.MonkeyPatch) -> Iterator[Node]:
    """Return a service whose caches do not expire during a test."""
    monkeypatch.setattr(relay, "PENDING_SECONDS", 600.0)
    with followed() as node:
        yield node
