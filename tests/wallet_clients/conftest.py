"""A wallet with a growing chain, for tests with third-party clients."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page

from samples.builder import ChainBuilder
from samples.schedules import from_genesis, make_genesis
from tests.support import chains
from tests.support.browser import end_holds, log_in
from tests.support.live import Live, live_service
from tests.support.rows import add_block, make_network, set_head
from tests.support.signing import PASSPHRASE, SIGNER, add_key
from tests.wallets.pages.conftest import Person
from wallets import internal_key
from wallets.models import Account

FOLDER = Path(__file__).parent
PACKAGES = FOLDER / "node_modules" / "@metamask"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the tests of this folder if their packages are not installed."""
    if PACKAGES.is_dir():
        return
    missing = pytest.mark.skip(reason="`make test-wallet-clients` installs the clients")
    for item in items:
        if FOLDER in item.path.parents:
            item.add_marker(missing)


class Mainnet:
    """A chain with mainnet's chain id, which clients request first."""

    def __init__(self) -> None:
        self._genesis: dict[str, Any] = make_genesis(
            chain_id=1,
            first_blocks=from_genesis("shanghai"),
            alloc={SIGNER: {"balance": hex(10**21)}},
        )
        self._builder = ChainBuilder(self._genesis)
        self.grow()

    def grow(self) -> int:
        """Add a block, as an importer in another process does. Return its number."""
        block = self._builder.block()
        chains.import_blocks("main", self._genesis, [block])
        return block.header.number


@pytest.fixture(scope="module")
def mainnet(module_db: None) -> Mainnet:
    """Serve this chain, and another one that does not grow."""
    mainnet = Mainnet()
    polygon = make_network("polygon", chain_id=137)
    add_block(polygon, "five", 5)
    set_head(polygon, "five", 5)
    return mainnet


@pytest.fixture(scope="module")
def live(mainnet: Mainnet) -> Iterator[Live]:
    internal_key.ensure()
    with live_service(workers=2) as live:
        yield live


@pytest.fixture
def person(live: Live) -> Person:
    return Person()


@pytest.fixture
def context(browser: Browser, live: Live, person: Person) -> Iterator[BrowserContext]:
    """Return a browser in which the user has logged in to the wallet."""
    context = browser.new_context()
    end_holds(context)
    log_in(context, live.base_url, person.client.cookies["sessionid"].value)
    yield context
    context.close()


@pytest.fixture
def signer(person: Person) -> str:
    """Give the user one account, which has a key and ether; return its address."""
    account = add_key(person.user)
    Account.objects.filter(user=person.user).exclude(pk=account.pk).delete()
    return account.address


def approve(window: Page) -> None:
    """Approve a request for a session, after pairing the page if necessary."""
    button = window.get_by_role("button", name=re.compile("Connect|Approve"))
    button.wait_for()
    if button.inner_text() == "Connect":
        button.click()
    window.get_by_role("button", name="Approve").click()


def sign(window: Page) -> None:
    """Sign the request that the wallet shows."""
    window.get_by_label("Passphrase").fill(PASSPHRASE)
    window.locator("button.primary").click()
