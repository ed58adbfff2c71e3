"""The explorer in a real browser: search, copy, decoded data, ABIs; anonymous and staff."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from abi.addresses import checksummed
from keys.models import AccessRequest, User
from keys.services import approve_access, issue_key
from networks.models import Network
from networks.services import configure_network
from nodeapi.models import Block, Transaction
from tests.browser.conftest import sign_in
from tests.explorer import tokens
from tests.explorer.tokens import BOB, COIN, FORGED, FORWARDED, PAYMENT, PRIZES
from tests.support import chains
from tests.support.browser import needs_chromium
from tests.support.live import Live, live_service
from tests.support.look import check_page
from tests.support.wallet import new_user

pytestmark = needs_chromium

ABI = [
    {
        "type": "function",
        "name": "transfer",
        "inputs": [
            {"name": "recipient", "type": "address"},
            {"name": "coins", "type": "uint256"},
        ],
    }
]


@pytest.fixture(scope="module")
def live(module_db: None) -> Iterator[Live]:
    for slug in ("tokens", "games"):
        chains.import_blocks(slug, tokens.genesis(), tokens.blocks())
    configure_network(network=Network.objects.get(slug="tokens"), public_explorer=True)
    with live_service() as running:
        yield running


@pytest.fixture
def staff(context: BrowserContext, live: Live) -> BrowserContext:
    user, _ = User.objects.get_or_create(
        email="staff@example.org", defaults={"is_staff": True, "is_superuser": True}
    )
    sign_in(context, live, user)
    return context


def name_of(index: int, slug: str = "tokens") -> str:
    rows = Transaction.objects.filter(block__network__slug=slug, block__number=1)
    return "0x" + bytes(rows.get(index=index).hash).hex()


def find(page: Page, text: str) -> None:
    page.get_by_role("searchbox").fill(text)
    page.get_by_role("button", name="Search").click()


def test_an_anonymous_visitor_finds_a_payment(context: BrowserContext) -> None:
    page = context.new_page()
    page.goto("/")
    page.get_by_role("link", name="Explore", exact=True).click()
    check_page(page, "index-public")
    find(page, "1")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Block 1")
    page.get_by_role("row").filter(has_text="transfer").first.get_by_role(
        "link"
    ).first.click()
    expect(page.get_by_role("heading", name="Transfers", exact=True)).to_be_visible()
    expect(page.get_by_text("25,000,000,000,000,000,000").first).to_be_visible()
    expect(page.locator("#access")).to_contain_text("need an API key that may trace")
    assert page.locator("#calls").count() == 0
    check_page(page, "transaction-public")

    receiver = checksummed(BOB)
    page.get_by_role("button", name=f"Copy the address {receiver}").first.click()
    page.get_by_role("status").get_by_text("Copied the address").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == receiver

    page.get_by_role("link", name="Log in").last.click()
    expect(page.get_by_label("Email", exact=False)).to_be_visible()


def test_an_address_is_found_by_its_beginning_and_paged(
    context: BrowserContext,
) -> None:
    page = context.new_page()
    page.goto("/explore/tokens/")
    find(page, checksummed(COIN)[:12])
    expect(page.get_by_role("heading", level=1)).to_contain_text("Address")
    expect(page.locator("p.hash")).to_contain_text(checksummed(COIN))
    check_page(page, "address-contract")
    page.get_by_role("link", name="Older →").click()
    page.get_by_role("link", name="Older →").click()
    expect(page.get_by_text("Oldest")).to_be_visible()
    expect(page.get_by_text("internal").first).to_be_visible()
    page.goto(f"/explore/tokens/address/0x{'f7' * 20}")
    check_page(page, "address-unused")


def test_searches_without_one_result_are_explained(
    context: BrowserContext, staff: BrowserContext
) -> None:
    page = context.new_page()
    page.goto("/explore/search")
    check_page(page, "search-empty")
    find(page, "0x" + checksummed(COIN)[2:].swapcase())
    expect(page.locator(".notice")).to_contain_text("checksum")
    check_page(page, "search-failing")
    find(page, "0xc1c1c1")
    expect(page.get_by_role("row")).to_have_count(3)
    check_page(page, "search-results")


def test_staff_see_decoded_calls_and_upload_an_abi(
    context: BrowserContext, staff: BrowserContext
) -> None:
    page = context.new_page()
    for index, name in ((PRIZES, "prizes"), (FORGED, "forged")):
        page.goto(f"/explore/tokens/tx/{name_of(index)}")
        check_page(page, f"transaction-{name}")
    page.goto(f"/explore/tokens/tx/{name_of(FORWARDED)}")
    expect(page.locator("#calls ~ .calls strong.method")).to_have_count(2)

    page.goto("/explore/tokens/")
    page.get_by_role("link", name="Contract ABIs").click()
    page.get_by_role("textbox", name="Name").fill("Coin")
    page.get_by_label("Contract address").fill("0x12")
    page.get_by_label("ABI", exact=True).fill(json.dumps(ABI))
    page.get_by_role("button", name="Upload").click()
    expect(page.locator(".errorlist")).to_contain_text("40 hexadecimal digits")
    expect(page.get_by_label("ABI", exact=True)).to_have_value(json.dumps(ABI))
    check_page(page, "abis-failing")
    page.get_by_label("Contract address").fill(checksummed(COIN))
    page.get_by_label("For everyone").check()
    page.get_by_role("button", name="Upload").click()
    expect(page.get_by_role("row").filter(has_text="everyone")).to_contain_text("Coin")
    check_page(page, "abis")

    page.goto(f"/explore/tokens/tx/{name_of(PAYMENT)}")
    expect(page.get_by_text("recipient").first).to_be_visible()
    page.goto("/explore/tokens/abis")
    page.get_by_role("button", name="Delete Coin").click()
    expect(page.get_by_text("No ABI has been uploaded yet.")).to_be_visible()


def test_copying_works_by_keyboard(context: BrowserContext, browser: Browser) -> None:
    page = context.new_page()
    page.goto(f"/explore/tokens/address/{checksummed(COIN)}")
    button = page.get_by_role("button", name=f"Copy the address {checksummed(COIN)}")
    button.first.focus()
    page.keyboard.press("Enter")
    page.get_by_role("status").get_by_text("Copied the address").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == checksummed(COIN)


def test_search_opens_blocks_transactions_and_addresses(
    context: BrowserContext,
) -> None:
    block = Block.objects.get(network__slug="tokens", number=1, is_canonical=True)
    page = context.new_page()
    page.goto("/explore/")
    for text, heading in (
        ("1", "Block 1"),
        (f"0x{bytes(block.hash).hex()}", "Block 1"),
        (name_of(PAYMENT), "Transaction"),
        (name_of(PAYMENT)[:14], "Transaction"),
        (checksummed(COIN), "Address"),
        (checksummed(COIN).lower(), "Address"),
    ):
        find(page, text)
        expect(page.get_by_role("heading", level=1)).to_contain_text(heading)
        expect(page.get_by_role("searchbox")).to_be_visible()  # on every page


def test_customer_requests_access_and_then_sees_calls_and_changes(
    context: BrowserContext, live: Live
) -> None:
    user = new_user()
    key = issue_key(owner=user, name="Indexer").api_key
    sign_in(context, live, user)
    page = context.new_page()
    transaction = f"/explore/tokens/tx/{name_of(PAYMENT)}"
    page.goto(transaction)
    expect(page.locator("#access")).to_contain_text("need an API key that may trace")
    expect(page.locator("#calls, #changes")).to_have_count(0)
    page.get_by_role("link", name="Request access").click()
    page.get_by_label("What do you need tracing for?").fill("To follow payments")
    page.get_by_role("button", name="Send the request").click()
    expect(page.get_by_role("status").first).to_contain_text("request is sent")
    approve_access(request=AccessRequest.objects.get(api_key=key))
    page.goto(transaction)
    expect(page.locator("#access")).to_have_count(0)
    for name in ("Calls", "State changes"):
        expect(page.get_by_role("heading", name=name, exact=True)).to_be_visible()


def test_customer_uploads_an_abi_that_others_do_not_see(
    context: BrowserContext, live: Live, browser: Browser
) -> None:
    user = new_user()
    issue_key(owner=user, may_trace=True)
    sign_in(context, live, user)
    page = context.new_page()
    page.goto("/explore/tokens/")
    page.get_by_role("link", name="Contract ABIs").click()
    page.get_by_role("textbox", name="Name").fill("My coin")
    page.get_by_label("Contract address").fill(checksummed(COIN))
    page.get_by_label("ABI", exact=True).fill(json.dumps(ABI))
    page.get_by_role("button", name="Upload").click()
    row = page.get_by_role("row").filter(has_text="My coin")
    expect(row).to_contain_text("you")
    transaction = f"/explore/tokens/tx/{name_of(PAYMENT)}"
    page.goto(transaction)
    expect(page.get_by_text("recipient").first).to_be_visible()
    other = browser.new_page(base_url=live.base_url)
    other.goto(transaction)
    expect(other.get_by_text("transfer").first).to_be_visible()
    expect(other.get_by_text("recipient")).to_have_count(0)
    other.close()
