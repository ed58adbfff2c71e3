"""The published @metamask/test-dapp-multichain, in Chromium with connect.js."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, Route, expect

from tests.support.browser import needs_chromium
from tests.support.live import Live
from tests.support.look import take_picture
from tests.support.sites import SiteHandler, running_site
from tests.support.wallet import A1
from tests.wallet_clients.conftest import PACKAGES, Mainnet

pytestmark = needs_chromium

BUILD = PACKAGES / "test-dapp-multichain" / "build"
PREFIX = "/test-dapp-multichain"
"""Where the build's page looks for its own files."""

MAINNET = "eip155:1"
BOTH = {MAINNET, "eip155:137"}


class DappFiles(SiteHandler, SimpleHTTPRequestHandler):
    """Serves the dapp's build. Its page includes the wallet's script before its own."""

    def __init__(self, *args: Any, script: str, **kwargs: Any) -> None:
        self._script = script
        super().__init__(*args, directory=str(BUILD), **kwargs)

    def do_GET(self) -> None:
        self.path = self.path.removeprefix(PREFIX)
        if self.path.partition("?")[0] != "/":
            super().do_GET()
            return
        page = (BUILD / "index.html").read_text()
        included = f'<head><script src="{self._script}"></script>'
        self.send_page(page.replace("<head>", included, 1))


@pytest.fixture(scope="module")
def origin(live: Live) -> Iterator[str]:
    """Serve the dapp."""
    handler = partial(DappFiles, script=f"{live.base_url}/static/wallet/connect.js")
    with running_site(handler) as port:
        yield f"http://localhost:{port}"


class Dapp:
    """The dapp's page, which shows the latest result of each kind first."""

    def __init__(self, context: BrowserContext, origin: str) -> None:
        self._context = context
        self.page: Page = context.new_page()
        self.page.goto(f"{origin}/?autoMode=true")

    def choose_wallet(self) -> None:
        """Select the announced wallet."""
        card = self.page.locator(".wallet-card")
        expect(card).to_contain_text("Portcullis")
        card.get_by_role("button", name="Connect").click()
        expect(self.page.get_by_text("Ready to Connect", exact=True)).to_be_visible()

    def request(self) -> Page:
        """Request two networks. Return the wallet's page with the request."""
        self.page.locator("#network-checkbox-eip155-59144").uncheck()
        for chain in (1, 137):
            self.page.locator(f"#network-checkbox-eip155-{chain}").check()
        with self._context.expect_page() as opened:
            self.page.locator("#create-session-btn").click()
        window = opened.value
        window.get_by_role("button", name="Connect").click()
        # The wallet redirects to this page.
        expect(window).to_have_url(re.compile("/wallet/requests/"))
        take_picture(window, "consent")
        inbox = self._context.new_page()
        inbox.goto(f"{window.url.partition('/wallet/')[0]}/wallet/")
        expect(inbox.get_by_role("link", name="Review")).to_be_visible()
        take_picture(inbox, "inbox")
        inbox.close()
        return window

    def connect(self) -> None:
        """Create a session."""
        self.choose_wallet()
        self.request().get_by_role("button", name="Approve").click()
        assert set(self.result("wallet_createSession")["sessionScopes"]) == BOTH

    def result(self, method: str) -> Any:
        """Return the latest result of a session method."""
        latest = self.page.locator("#session-method-details-0")
        expect(latest.locator(".method-name")).to_have_text(method)
        return self.shown("session-method-result-0")

    def shown(self, identifier: str) -> Any:
        """Return a result, once it is shown."""
        return json.loads(self.page.locator(f"#{identifier}").inner_text())

    def invoke(self, method: str, params: list[Any]) -> Any:
        """Enter a request into mainnet's form, send it, and return the result."""
        self.page.locator("#method-select-eip155-1").select_option(method)
        request = {"method": method, "params": params}
        asked = {"scope": MAINNET, "request": request}
        call = {"method": "wallet_invokeMethod", "params": asked}
        form = self.page.locator("#invoke-method-request-eip155-1")
        form.fill(json.dumps(call))
        self.page.locator("#invoke-method-eip155-1-btn").click()
        return self.shown(f"invoke-method-eip155-1-{method}-result-0")

    def scopes(self) -> set[str]:
        """Return the networks that the dapp shows as connected."""
        listed = self.page.get_by_test_id("connected-chains-list").locator("li")
        return set(listed.all_inner_texts())


@pytest.fixture
def dapp(context: BrowserContext, origin: str) -> Dapp:
    return Dapp(context, origin)


def test_dapp_reads_the_chain_with_the_button_for_each_method(dapp: Dapp):
    dapp.connect()
    dapp.page.locator("#direct-invoke-eip155-1-eth_chainId").click()
    assert dapp.shown("invoke-method-eip155-1-eth_chainId-result-0") == "0x1"
    expect(dapp.page.get_by_test_id("connected-accounts-list")).to_have_text(A1)


def test_dapp_shows_blocks_as_they_arrive(dapp: Dapp, mainnet: Mainnet):
    dapp.connect()
    subscription = dapp.invoke("eth_subscribe", ["newHeads"])
    number = mainnet.grow()
    notified = dapp.shown("wallet-notify-result-0")
    assert notified["method"] == "wallet_notify"
    assert notified["params"]["scope"] == MAINNET
    event = notified["params"]["notification"]["params"]
    assert event["subscription"] == subscription
    assert event["result"]["number"] == hex(number)


def test_dapp_sees_what_is_changed_in_the_wallet(
    dapp: Dapp, context: BrowserContext, live: Live
):
    dapp.connect()
    window = context.new_page()
    window.goto(f"{live.base_url}/wallet/connections")
    take_picture(window, "connections")
    window.get_by_role("link", name="Edit").click()
    window.get_by_role("checkbox", name="Polygon").uncheck()
    window.get_by_role("button", name="Save").click()
    changed = dapp.shown("wallet-session-changed-result-0")
    assert changed["method"] == "wallet_sessionChanged"
    assert set(changed["params"]["sessionScopes"]) == {MAINNET}
    assert dapp.scopes() == {MAINNET}


def test_dapp_revokes_its_session(dapp: Dapp):
    dapp.connect()
    dapp.page.locator("#revoke-session-btn").click()
    assert dapp.result("wallet_revokeSession") is True
    dapp.page.locator("#get-session-btn").click()
    assert dapp.result("wallet_getSession")["sessionScopes"] == {}


def test_dapp_learns_that_the_user_rejected(dapp: Dapp):
    said: list[str] = []
    dapp.page.on("console", lambda line: said.append(line.text))
    dapp.choose_wallet()
    with dapp.page.expect_console_message(lambda line: line.type == "error"):
        dapp.request().get_by_role("button", name="Reject", exact=True).click()
    assert any("User rejected the request." in line for line in said), said


def test_dapp_that_is_loaded_again_has_its_session_still(dapp: Dapp):
    dapp.connect()
    dapp.page.reload()
    chains = dapp.page.get_by_test_id("connected-chains-list").locator("li")
    expect(chains).to_have_count(len(BOTH))
    assert dapp.scopes() == BOTH
    assert dapp.invoke("eth_chainId", []) == "0x1"


def test_api_client_works_over_the_scripts_transport(
    dapp: Dapp, context: BrowserContext
):
    """@metamask/multichain-api-client on a page, as docs/connect.md shows it."""
    dapp.connect()
    modules = PACKAGES / "multichain-api-client" / "dist"

    def serve(route: Route) -> None:
        name = route.request.url.partition("/client/")[2]
        route.fulfill(path=modules / name, content_type="text/javascript")

    context.route("**/client/**", serve)
    found = dapp.page.evaluate(
        """async () => {
            const { getMultichainClient } = await import("/client/index.mjs");
            const client = getMultichainClient({ transport: portcullis.transport() });
            const request = { method: "eth_chainId", params: [] };
            const call = { scope: "eip155:1", request };
            const before = await client.getSession();
            const chain = await client.invokeMethod(call);
            await client.revokeSession({});
            const refused = await client.invokeMethod(call).catch((error) => error);
            return [Object.keys(before.sessionScopes), chain, refused.cause.code];
        }"""
    )
    assert (set(found[0]), *found[1:]) == (BOTH, "0x1", 4100)
