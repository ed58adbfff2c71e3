"""The published @metamask/test-dapp, in Chromium with connect.js.

The dapp's buttons work with wallets that set `isMetaMask` only, which a page can ask of
connect.js.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.support.browser import needs_chromium, until
from tests.support.live import Live
from tests.support.look import take_picture
from tests.support.signing import signer_of
from tests.support.sites import SiteHandler, running_site
from tests.wallet_clients.conftest import PACKAGES, approve, sign

pytestmark = needs_chromium

BUILD = PACKAGES / "test-dapp" / "dist"


class DappFiles(SiteHandler, SimpleHTTPRequestHandler):
    """Serves the dapp. Its page includes the wallet's script before its own."""

    def __init__(self, *args: Any, script: str, **kwargs: Any) -> None:
        self._script = script
        super().__init__(*args, directory=str(BUILD), **kwargs)

    def do_GET(self) -> None:
        if self.path != "/":
            super().do_GET()
            return
        page = (BUILD / "index.html").read_text()
        included = (
            f'<head><script data-ethereum="metamask" src="{self._script}"></script>'
        )
        self.send_page(page.replace("<head>", included, 1))


@pytest.fixture(scope="module")
def origin(live: Live) -> Iterator[str]:
    """Serve the dapp."""
    handler = partial(DappFiles, script=f"{live.base_url}/static/wallet/connect.js")
    with running_site(handler) as port:
        yield f"http://localhost:{port}"


class Dapp:
    """The dapp's page."""

    def __init__(self, context: BrowserContext, origin: str) -> None:
        self._context = context
        self.page: Page = context.new_page()
        # Fonts and style sheets of other sites, which are not reachable in tests.
        context.route(re.compile("googleapis|cdnjs"), lambda route: route.abort())
        self.page.goto(origin)

    def asking(self, button: str, decide: Callable[[Page], None]) -> None:
        """Click a button that causes a request, and decide it as the user."""
        with self._context.expect_page() as opened:
            self.page.locator(f"#{button}").click()
        take_picture(opened.value, f"classic-{button}")
        decide(opened.value)
        until(self.page, lambda: self._context.pages == [self.page])

    def connect(self) -> None:
        """Select the announced wallet, and connect."""
        self.page.get_by_role("button", name="Use Portcullis").click()
        expect(self.page.locator("#activeProviderName")).to_have_text("Portcullis")
        self.asking("connectButton", approve)

    def shown(self, identifier: str) -> str:
        """Return the text of a result, once it is shown."""
        found = self.page.locator(f"#{identifier}")
        expect(found).not_to_have_text("")
        return found.inner_text()


@pytest.fixture
def dapp(context: BrowserContext, origin: str, signer: str) -> Dapp:
    return Dapp(context, origin)


def test_dapp_connects_and_shows_account_and_chain(dapp: Dapp, signer: str):
    expect(dapp.page.locator("#chainId")).to_have_text("0x1")
    dapp.connect()
    expect(dapp.page.locator("#accounts")).to_have_text(signer)
    expect(dapp.page.locator("#network")).to_have_text("1")
    expect(dapp.page.locator("#connectButton")).to_have_text("Connected")
    take_picture(dapp.page, "classic-connected")
    dapp.page.locator("#getAccounts").click()
    assert dapp.shown("getAccountsResult") == signer
    dapp.page.locator("#getPermissions").click()
    assert "eth_accounts" in dapp.shown("permissionsResult")
    dapp.page.locator("#revokeAccountsPermission").click()
    expect(dapp.page.locator("#accounts")).to_have_text("")


def test_dapp_signs_messages_and_typed_data(dapp: Dapp, signer: str):
    dapp.connect()
    dapp.asking("personalSign", sign)
    message = b"Example `personal_sign` message"
    assert signer_of(message, dapp.shown("personalSignResult")) == signer
    dapp.asking("signTypedDataV4", sign)
    dapp.page.locator("#signTypedDataV4Verify").click()
    assert dapp.shown("signTypedDataV4VerifyResult") == signer
    dapp.asking(
        "signPermit",
        lambda window: window.get_by_role("button", name="Reject", exact=True).click(),
    )
    assert "User rejected the request." in dapp.shown("signPermitResult")


def test_dapp_sends_a_transaction_and_asks_for_permissions(dapp: Dapp, signer: str):
    dapp.connect()
    heard: list[str] = []
    dapp.page.on("console", lambda line: heard.append(line.text))
    dapp.asking("sendEIP1559Button", sign)
    until(dapp.page, lambda: any(re.search("0x[0-9a-f]{64}", text) for text in heard))
    dapp.asking("requestPermissions", approve)
    assert "eth_accounts" in dapp.shown("permissionsResult")
