"""Keys and signatures in a real browser, with a program that makes requests."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from threading import Thread
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from networks.models import Network
from networks.services import configure_network
from server.supervisor import Server
from tests.support.browser import log_in, needs_chromium
from tests.support.look import width_of
from tests.support.signing import (
    MAIL,
    PASSPHRASE,
    approval_of,
    signer_of,
    signer_of_data,
)
from tests.support.upstream_node import UpstreamNode, running_node
from tests.support.wallet import A1, BY_USER, M0
from tests.wallets.pages.conftest import Person
from wallets.client import CallFailed, WalletClient, connect
from wallets.services.pairing import redeem_program_code, start_program_pairing
from wallets.signing.keys import address_of, decrypt

pytestmark = needs_chromium
ONE = {"optionalScopes": {"eip155:1": M0}}


@pytest.fixture
def node(inhabited: Person) -> Iterator[UpstreamNode]:
    """Return a node that accepts transactions of eip155:1."""
    with running_node() as running:
        network = Network.objects.get(chain_id=1)
        configure_network(network=network, upstream_urls=[running.url])
        yield running
        configure_network(network=network, upstream_urls=[])


@pytest.fixture
def program(service: Server, inhabited: Person) -> Iterator[Program]:
    """Return a program of the user's, connected."""
    code = start_program_pairing(user=inhabited.user, label="bot")
    token = redeem_program_code(code=code, cause=BY_USER).secret
    running = Program(service.base_url.replace("http", "ws") + "/ws/dapp", token)
    yield running
    running.stop()


class Program:
    """A dapp that makes calls in its own thread, because the browser uses this one."""

    def __init__(self, url: str, token: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever)
        self._thread.start()
        self._client: WalletClient = self.run(connect(url, token)).result(30)

    def run(self, work: Coroutine[Any, Any, Any]) -> Future[Any]:
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def call(self, method: str, params: Any) -> Future[Any]:
        return self.run(self._client.call(method, params))

    def invoke(self, method: str, *params: Any) -> Future[Any]:
        return self.run(self._client.invoke("eip155:1", method, *params))

    def stop(self) -> None:
        self.run(self._client.close()).result(30)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


def created(page: Page) -> str:
    """Create an account on the pages. Return the address in the downloaded file."""
    page.goto("/wallet/accounts")
    page.get_by_role("link", name="Create an account").click()
    page.get_by_label("Label").fill("Spending")
    page.get_by_label("Passphrase", exact=False).first.fill(PASSPHRASE)
    page.get_by_label("Repeat the passphrase").fill(PASSPHRASE)
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Key of Spending")
    page.get_by_label("Passphrase").fill(PASSPHRASE)
    with page.expect_download() as saved:
        page.get_by_role("button", name="Download the keystore").click()
    text = saved.value.path().read_text()
    keystore = json.loads(text)
    address = address_of(decrypt(keystore, PASSPHRASE, owner="test"))
    assert keystore["address"].lower() in address
    return address


def look_at(page: Page, asks: str) -> None:
    """Open the only pending request."""
    page.goto("/wallet/")
    expect(page.get_by_text(asks)).to_be_visible()
    page.get_by_role("link", name="Review").click()


def sign(page: Page, done: str) -> None:
    """Type the passphrase, and press the return key."""
    page.get_by_label("Passphrase").fill(PASSPHRASE)
    page.get_by_label("Passphrase").press("Enter")
    expect(page.get_by_role("status")).to_contain_text(done)


def test_from_a_new_key_to_a_sent_transaction(
    context: BrowserContext, program: Program, node: UpstreamNode
):
    faults: list[str] = []
    page = context.new_page()
    page.on("console", lambda line: faults.append(line.text))
    page.on("pageerror", lambda error: faults.append(str(error)))
    address = created(page)

    session = program.call("wallet_createSession", ONE)
    look_at(page, "wants to connect")
    page.get_by_role("checkbox", name=address).check()
    page.get_by_role("button", name="Approve").click()
    expect(page.get_by_role("status")).to_contain_text("now has the permissions")
    methods = session.result(30)["sessionScopes"]["eip155:1"]["methods"]
    assert "eth_sendTransaction" in methods

    message = program.invoke("personal_sign", "0x" + b"Hello".hex(), address)
    look_at(page, "asks you to sign a message")
    expect(page.get_by_text("Hello")).to_be_visible()
    sign(page, "Signed for bot")
    assert signer_of(b"Hello", message.result(30)) == address

    data = program.invoke("eth_signTypedData_v4", address, MAIL)
    look_at(page, "asks you to sign typed data")
    expect(page.get_by_text("Hello, Bob!")).to_be_visible()
    sign(page, "Signed for bot")
    assert signer_of_data(MAIL, data.result(30)) == address

    transfer = {"from": address, "to": A1, "value": hex(25 * 10**16)}
    sent = program.invoke("eth_sendTransaction", transfer)
    look_at(page, "asks you to send a transaction")
    expect(page.get_by_text("0.25 ether", exact=True)).to_be_visible()
    sign(page, "Sent the transaction for bot. Its hash is 0x")
    assert node.answer("eth_getTransactionByHash", [sent.result(30)]) is not None

    page.goto("/wallet/activity")
    for text in ("signature given", "key added", sent.result()):
        expect(page.get_by_text(text).first).to_be_visible()
    assert faults == []


def test_button_that_says_no_needs_no_passphrase(
    context: BrowserContext, program: Program, inhabited: Person
):
    account = inhabited.with_key()
    page = context.new_page()
    session = program.call("wallet_createSession", ONE)
    look_at(page, "wants to connect")
    page.get_by_role("checkbox", name=account.address).check()
    page.get_by_role("button", name="Approve").click()
    session.result(30)
    message = program.invoke("personal_sign", "0x01", account.address)
    look_at(page, "asks you to sign a message")
    page.get_by_role("button", name="Reject", exact=True).click()
    expect(page.get_by_role("status")).to_contain_text("Rejected the request.")
    with pytest.raises(CallFailed, match="4001"):
        message.result(30)


def test_pages_fit_on_a_phone_without_scripts(
    browser: Browser, service: Server, inhabited: Person
):
    """The widths with scripts are checked by tests/browser/test_every_page.py."""
    faults: list[str] = []
    phone = browser.new_context(
        base_url=service.base_url,
        viewport={"width": 390, "height": 800},
        java_script_enabled=False,
    )
    log_in(phone, service.base_url, inhabited.client.cookies["sessionid"].value)
    phone.on("console", lambda line: faults.append(line.text))
    page = phone.new_page()
    for path in addresses(inhabited):
        page.goto(path)
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        assert width_of(page) <= 390, path
    phone.close()
    assert faults == []


def addresses(person: Person) -> list[str]:
    """Return the pages of the wallet, and a page of each kind of signature."""
    account = person.with_key()
    make: Callable[..., Any] = person.asked_to_sign
    waiting = [
        make(message="0x" + b"https://bank.example/".hex() * 40),
        make("eth_signTypedData_v4", data=json.dumps(MAIL)),
        make("eth_sendTransaction", transaction=approval_of(1)),
    ]
    return [
        "/wallet/",
        "/wallet/connections",
        "/wallet/activity",
        f"/wallet/requests/{person.asked().pk}",
        "/wallet/accounts",
        "/wallet/accounts/create",
        "/wallet/accounts/import",
        f"/wallet/accounts/{account.pk}/key",
        *(f"/wallet/signatures/{request.pk}" for request in waiting),
    ]
