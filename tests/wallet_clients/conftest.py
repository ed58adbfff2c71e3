"""A wallet with a chain that grows, for third-party clients."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from samples.builder import ChainBuilder
from samples.schedules import from_genesis, make_genesis
from tests.support import chains
from tests.support.live import Live, live_service
from tests.support.rows import add_block, make_network, set_head
from tests.wallets.pages.conftest import Person
from wallets import internal_key

FOLDER = Path(__file__).parent
PACKAGES = FOLDER / "node_modules" / "@metamask"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what is here where its packages are not installed."""
    if PACKAGES.is_dir():
        return
    missing = pytest.mark.skip(reason="`make test-wallet-clients` installs the clients")
    for item in items:
        if FOLDER in item.path.parents:
            item.add_marker(missing)


class Mainnet:
    """A chain with mainnet's number, which clients ask for first."""

    def __init__(self) -> None:
        self._genesis: dict[str, Any] = make_genesis(
            chain_id=1, first_blocks=from_genesis("shanghai"), alloc={}
        )
        self._builder = ChainBuilder(self._genesis)
        self.grow()

    def grow(self) -> int:
        """Add a block, as an importer in another process does; return its number."""
        block = self._builder.block()
        chains.import_blocks("main", self._genesis, [block])
        return block.header.number


@pytest.fixture(scope="module")
def mainnet(module_db: None) -> Mainnet:
    """Serve this chain, and another one that stands still."""
    polygon = make_network("polygon", chain_id=137)
    add_block(polygon, "five", 5)
    set_head(polygon, "five", 5)
    return Mainnet()


@pytest.fixture(scope="module")
def live(mainnet: Mainnet) -> Iterator[Live]:
    internal_key.ensure()
    with live_service(workers=2) as live:
        yield live


@pytest.fixture
def person(live: Live) -> Person:
    return Person()
