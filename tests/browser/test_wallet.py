"""Wallet users in a real browser: the facts that pages show before a decision."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from keys.models import User
from tests.browser.conftest import sign_in
from tests.support import copies
from tests.support.browser import needs_chromium
from tests.support.live import Live, live_service
from tests.support.look import check_page
from tests.support.named_token import TOKEN, call_data, domain_of, import_token_chain
from tests.support.signing import MAIL, PASSPHRASE, SIGNER, add_key
from tests.support.wallet import A1, BY_USER, new_user
from tests.wallets.signing.known.samples import PERMIT2_DOMAIN, sample
from wallets.models import (
    ConsentRequest,
    Dapp,
    DappKind,
    Event,
    RequestState,
    Session,
)
from wallets.scopes import ScopeObject
from wallets.services.accounts import add_account
from wallets.services.consent import request_session
from wallets.services.pairing import pair_dapp
from wallets.services.sessions import write_session
from wallets.services.signatures import request_signature
from wallets.signing.transactions import DYNAMIC_FEE, Transaction, to_json
from wallets.signing.typed_data import read_typed_data

pytestmark = needs_chromium

CHAIN_ID = 4243
SCOPE = f"eip155:{CHAIN_ID}"
SPENDER = "0x" + "5e" * 20
MOST = 2**256 - 1


@pytest.fixture(scope="module")
def live(module_db: None) -> Iterator[Live]:
    """Serve the sample chain, and a chain with a token."""
    copies.demo_chain()
    import_token_chain("tokens", CHAIN_ID)
    with live_service() as running:
        yield running


@pytest.fixture
def user(context: BrowserContext, live: Live) -> User:
    user = new_user()
    sign_in(context, live, user)
    return user


@pytest.fixture
def dapp(user: User) -> Dapp:
    """Return a dapp that may ask for signatures of an account with ether and tokens."""
    account = add_key(user)
    dapp = pair_dapp(
        user=user, kind=DappKind.WEB, ident="https://swap.example", cause=BY_USER
    )
    methods = ("personal_sign", "eth_signTypedData_v4", "eth_sendTransaction")
    granted = ScopeObject(methods, accounts=(f"{SCOPE}:{account.address}",))
    write_session(dapp.session, {SCOPE: granted}, event=Event.GRANTED, cause=BY_USER)
    return dapp


def asked(dapp: Dapp, method: str, **subject: Any) -> ConsentRequest:
    body = {"scope": SCOPE, "address": SIGNER, **subject}
    return request_signature(dapp_id=dapp.pk, method=method, body=body, cause=BY_USER)


def asked_data(dapp: Dapp, data: Any) -> ConsentRequest:
    text = read_typed_data(data).to_text()
    return asked(dapp, "eth_signTypedData_v4", data=text)


def asked_to_send(
    dapp: Dapp, data: bytes = b"", to: str = TOKEN, value: int = 0
) -> ConsentRequest:
    transaction = Transaction(
        DYNAMIC_FEE, CHAIN_ID, to, value, data, 200_000, 3 * 10**9, 10**9
    )
    return asked(dapp, "eth_sendTransaction", transaction=to_json(transaction))


def see(page: Page, address: str) -> None:
    """Open a page that shows what nodes have answered."""
    page.goto(address)
    again = page.get_by_role("link", name="Try again")
    while again.count():  # the machine is busy
        again.first.click()


def look(page: Page, name: str, address: str | None = None) -> None:
    """Open a page, and check it with axe.

    tests/browser/test_every_page.py checks the pages without special contents.
    """
    if address is not None:
        see(page, address)
    check_page(page, name)


def of(request: ConsentRequest) -> str:
    return f"/wallet/signatures/{request.pk}"


def permit(**changes: Any) -> Any:
    tomorrow = int(time.time()) + 86_400
    message = {"owner": SIGNER, "spender": SPENDER, "deadline": tomorrow, **changes}
    return sample("Permit(address owner", domain_of(CHAIN_ID), **message)


def test_permit_that_the_token_confirms_is_a_sentence(
    context: BrowserContext, dapp: Dapp
) -> None:
    page = context.new_page()
    waiting = asked_data(dapp, permit(value=str(MOST)))
    look(page, "permit", of(waiting))
    expect(page.get_by_role("heading", name="Token permit (ERC-2612)")).to_be_visible()
    summary = page.locator(".summary")
    expect(summary).to_contain_text("move an unlimited amount of “ABC” (token 0x7C7C")
    expect(summary).to_contain_text("The contract on this network confirms")
    expect(page.get_by_text(f"{MOST} = unlimited")).to_be_visible()
    exact = asked_data(dapp, permit(value=1550))
    page.goto(of(exact))
    expect(summary).to_contain_text("up to 15.5 “ABC”")


def test_lookalikes_of_a_permit_get_no_sentence(
    context: BrowserContext, dapp: Dapp
) -> None:
    page = context.new_page()
    data = permit()
    data["domain"]["name"] = "Another token"
    look(page, "permit-refuted", of(asked_data(dapp, data)))
    expect(
        page.get_by_text("does not confirm that the domain below is its own")
    ).to_be_visible()
    expect(page.locator(".summary")).to_have_count(0)
    renamed = permit()
    renamed["types"]["Permit"][2]["name"] = "amount"
    renamed["message"]["amount"] = 1
    look(page, "permit-lookalike", of(asked_data(dapp, renamed)))
    expect(page.get_by_text("does not know this type of data")).to_be_visible()
    expect(page.locator(".summary")).to_have_count(0)


def test_unknown_data_is_a_tree(context: BrowserContext, dapp: Dapp) -> None:
    page = context.new_page()
    data = {**MAIL, "domain": {"name": "Ether Mail", "chainId": CHAIN_ID}}
    page.goto(of(asked_data(dapp, data)))
    expect(page.get_by_text("Hello, Bob!")).to_be_visible()
    batch = sample("PermitBatch(", {**PERMIT2_DOMAIN, "chainId": CHAIN_ID})
    look(page, "permit2-refuted", of(asked_data(dapp, batch)))
    expect(
        page.get_by_text("does not confirm that the domain below is its own")
    ).to_be_visible()


def test_transaction_says_what_it_would_do(context: BrowserContext, dapp: Dapp) -> None:
    page = context.new_page()
    data = call_data("transfer(address,uint256)", SPENDER, 1550)
    look(page, "transfer", of(asked_to_send(dapp, data)))
    effects = page.locator(".effects")
    expect(effects).to_contain_text("−15.5 “ABC” (token 0x7C7C")
    expect(effects).to_contain_text("from this account to 0x5e5E")
    expect(page.get_by_text("transfer(address,uint256)")).to_be_visible()

    data = call_data("approve(address,uint256)", SPENDER, MOST)
    look(page, "approval", of(asked_to_send(dapp, data)))
    expect(effects).to_contain_text("may move an unlimited amount of “ABC”")
    expect(page.get_by_text("lets another account use your assets")).to_be_visible()


def test_transaction_that_would_fail_is_warned_about(
    context: BrowserContext, dapp: Dapp
) -> None:
    page = context.new_page()
    look(page, "failing", of(asked_to_send(dapp, call_data("refuse()"))))
    expect(page.get_by_role("alert")).to_contain_text("not allowed")
    expect(page.get_by_role("alert")).to_contain_text("You would still pay a fee")
    poor = asked_to_send(dapp, to=SPENDER, value=11 * 10**18)
    look(page, "unaffordable", of(poor))
    expect(page.get_by_role("alert")).to_contain_text("insufficient funds")
    expect(page.get_by_role("button", name="Sign and send")).to_be_visible()


def asked_to_connect(dapp: Dapp, *scopes: str) -> ConsentRequest:
    return request_session(
        dapp_id=dapp.pk,
        wanted=dict.fromkeys(scopes, ScopeObject()),
        expires_at=None,
        cause=BY_USER,
    )


def test_consent_page_follows_what_is_ticked(
    context: BrowserContext, dapp: Dapp, user: User
) -> None:
    add_account(user=user, address=A1, label="Savings", cause=BY_USER)
    page = context.new_page()
    waiting = asked_to_connect(dapp, SCOPE, "eip155:202611", "eip155:5")
    page.goto(f"/wallet/requests/{waiting.pk}")
    networks = page.locator(".network")
    expect(networks).to_have_count(2)
    expect(networks.first).to_contain_text("Transactions on this network stay")
    page.locator(".network summary").first.click()
    expect(networks.first.get_by_text("eth_sendRawTransaction")).to_be_visible()
    expect(page.get_by_text("eth_sendRawTransactionSync")).to_have_count(0)
    signing = networks.first.locator("summary .gets-sign")

    def is_struck() -> bool:
        line = "one => getComputedStyle(one).textDecorationLine"
        return bool(signing.evaluate(line) == "line-through")

    assert not is_struck()
    box = page.get_by_role("checkbox", name="sign messages")
    box.uncheck()
    assert is_struck()
    box.check()
    page.get_by_role("checkbox", name="Spending").uncheck()
    page.get_by_role("checkbox", name="Savings").check()
    assert is_struck()
    expect(page.get_by_text("None of the selected accounts has a key")).to_be_visible()
    look(page, "consent-watch-only")
    page.get_by_role("checkbox", name="Sample chain").uncheck()
    page.get_by_role("button", name="Approve").click()
    expect(page.get_by_role("status")).to_contain_text("now has the permissions")
    granted = Session.objects.get(dapp=dapp).scopes
    assert list(granted) == [SCOPE]
    assert "personal_sign" not in granted[SCOPE].methods


def test_accounts_show_balances_on_each_network(
    context: BrowserContext, dapp: Dapp, user: User
) -> None:
    add_account(user=user, address=A1, label="Savings", cause=BY_USER)
    page = context.new_page()
    see(page, "/wallet/accounts")
    cards = page.get_by_role("listitem")
    expect(cards.filter(has_text="Spending").locator(".balances")).to_contain_text(
        "10 ether"
    )
    expect(cards.filter(has_text="Savings").locator(".balances")).to_contain_text(
        "0 ether"
    )


def test_label_that_is_rejected_stays_in_its_field(
    context: BrowserContext, dapp: Dapp, user: User
) -> None:
    page = context.new_page()
    page.goto("/wallet/accounts")
    field = page.get_by_role("listitem").get_by_label("Label")
    field.fill("Sp\u202eending")
    page.get_by_role("button", name="Rename").click()
    expect(page.get_by_role("listitem").first).to_contain_text("U+202E")
    expect(field).to_have_value("Sp\u202eending")
    look(page, "rejected-label")
    field.fill("Shopping")
    page.get_by_role("button", name="Rename").click()
    expect(page.get_by_role("heading", name="Shopping")).to_be_visible()


def test_empty_pages_name_the_first_step(context: BrowserContext, user: User) -> None:
    page = context.new_page()
    for name in ("", "accounts", "connections", "activity"):
        look(page, f"empty-{name or 'requests'}", f"/wallet/{name}")
        main = page.get_by_role("main")
        expect(main.get_by_role("link", name="create an account")).to_be_visible()
    page.goto("/wallet/")
    page.get_by_role("link", name="create an account").click()
    page.get_by_label("Label").fill("First")
    page.get_by_label("Passphrase", exact=False).first.fill(PASSPHRASE)
    page.get_by_label("Repeat the passphrase").fill(PASSPHRASE)
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Key of First")
    look(page, "new-key")
    look(page, "requests-without-dapp", "/wallet/")
    expect(page.get_by_text("Next, open a dapp")).to_be_visible()


def test_signing_in_and_a_closed_request_are_looked_at(
    context: BrowserContext, dapp: Dapp, user: User
) -> None:
    page = context.new_page()
    message = "https://swap.example wants you to sign in with your Ethereum account:"
    waiting = asked(dapp, "personal_sign", message="0x" + message.encode().hex())
    look(page, "message", of(waiting))
    page.get_by_role("button", name="Reject", exact=True).click()
    expect(page.get_by_role("status")).to_contain_text("Rejected the request.")
    look(page, "closed", of(waiting))


def test_permit_is_signed_with_the_passphrase(
    context: BrowserContext, dapp: Dapp
) -> None:
    page = context.new_page()
    waiting = asked_data(dapp, permit(value=1550))
    page.goto("/wallet/")
    page.get_by_role("link", name="Review").click()
    expect(page.locator(".summary")).to_contain_text("up to 15.5 “ABC”")
    page.get_by_label("Passphrase").fill(PASSPHRASE)
    page.get_by_role("button", name="Sign", exact=True).click()
    expect(page.get_by_role("status")).to_contain_text("igned")
    waiting.refresh_from_db()
    assert waiting.state == RequestState.APPROVED


def test_dapp_is_disconnected_blocked_and_unblocked(
    context: BrowserContext, dapp: Dapp
) -> None:
    page = context.new_page()
    page.goto("/wallet/connections")
    page.get_by_role("button", name="Disconnect", exact=True).click()
    expect(page.get_by_role("status")).to_contain_text("Disconnected")
    assert not Session.objects.get(dapp=dapp).scopes
    page.get_by_role("button", name="Block", exact=True).click()
    expect(page.get_by_role("status")).to_contain_text("Blocked")
    page.get_by_role("button", name="Unblock").click()
    expect(page.get_by_role("status")).to_contain_text("Unblocked")


def test_program_gets_a_code(context: BrowserContext, dapp: Dapp) -> None:
    page = context.new_page()
    page.goto("/wallet/connections")
    page.get_by_label("Name of the program").fill("Trading bot")
    page.get_by_role("button", name="Create a code").click()
    expect(page.locator(".code")).to_contain_text(re.compile(r"\w{4}-\w{4}-\w{4}"))
    look(page, "program-code")
