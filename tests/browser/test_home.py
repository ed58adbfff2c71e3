"""A visitor makes a call from the home page, and logs in with the displayed password."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, expect

from config import demo
from keys.services import get_or_create_customer, issue_key
from networks.models import Network, NetworkState
from tests.browser.conftest import copied
from tests.support import copies, sample
from tests.support.browser import needs_chromium
from tests.support.followed import FollowedChain
from tests.support.live import Live, live_service
from tests.support.look import check_page

pytestmark = needs_chromium


@pytest.fixture(scope="module")
def live(module_db: None) -> Iterator[Live]:
    """Serve the sample chain as `make run` does."""
    copies.demo_chain()
    owner = get_or_create_customer(email=demo.CUSTOMER)
    secret = issue_key(owner=owner, name="Demo").secret
    with live_service(env={"DEMO": "on", "HOME_API_KEY": secret}) as running:
        running.secrets.append(secret)
        yield running


def test_call_from_the_home_page_has_the_response_that_it_shows(
    context: BrowserContext, live: Live
) -> None:
    page = context.new_page()
    page.goto("/")
    call = copied(page, "the call for curl")
    done = subprocess.run(
        ["sh", "-c", call], capture_output=True, text=True, check=True, timeout=30
    )
    shown = page.locator("#response-curl").inner_text()
    assert json.loads(done.stdout) == json.loads(shown)
    page.get_by_text("viem", exact=True).click()
    expect(page.locator("#response-viem")).to_have_text(f"{sample.head()}n")
    expect(page.locator("#response-curl")).to_be_hidden()
    expect(page.get_by_role("img", name="Gas of")).to_be_visible()


def test_visitor_runs_the_call_and_opens_the_console_with_the_shared_key(
    context: BrowserContext,
) -> None:
    page = context.new_page()
    page.goto("/")
    page.get_by_role("button", name="Run the call").click()
    expect(page.locator("#run-state")).to_contain_text("200, ")
    assert json.loads(page.locator("#run-response").inner_text())["result"] == hex(
        sample.head()
    )
    page.get_by_role("link", name="Try other methods in the console").click()
    page.get_by_label("Method").select_option("eth_chainId")
    page.get_by_role("button", name="Run").click()
    expect(page.locator("#status")).to_contain_text("200 OK")


def test_examples_are_chosen_with_the_keyboard(context: BrowserContext) -> None:
    page = context.new_page()
    page.goto("/")
    page.get_by_role("radio", name="curl").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#response-web3py")).to_have_text(str(sample.head()))


def test_head_and_response_follow_new_blocks(own_context: BrowserContext) -> None:
    """The page updates itself, without a reload or a click."""
    chain = FollowedChain("growing")
    chain.grow(3)
    page = own_context.pages[0]
    page.clock.install()
    page.goto("/")
    head = page.locator("#network-growing").get_by_role("cell").nth(2)
    expect(head).to_have_text("3")
    chain.grow(2)
    page.clock.fast_forward(10_000)  # longer than the pause between two requests
    expect(head).to_have_text("5")
    page.get_by_role("button", name="Pause updates").click()
    Network.objects.filter(slug="growing").update(state=NetworkState.HIDDEN)


def test_page_leads_to_both_logins(context: BrowserContext) -> None:
    page = context.new_page()
    for who, heading in (("customer", "Log in"), ("staff", "Portcullis")):
        page.goto("/")
        page.get_by_role("link", name=f"Log in as {who}").click()
        expect(page.get_by_text(heading).first).to_be_visible()
        assert page.locator("input[name=next]").input_value() in (
            "/dashboard/",
            "/admin/",
        )


def test_page_is_whole_without_scripts(browser: Browser, live: Live) -> None:
    context = browser.new_context(base_url=live.base_url, java_script_enabled=False)
    page = context.new_page()
    page.goto("/")
    expect(page.locator("#response-curl")).to_be_visible()
    page.get_by_text("web3.py", exact=True).click()
    expect(page.locator("#response-web3py")).to_be_visible()
    context.close()


def test_quickstart_has_calls_to_copy(context: BrowserContext) -> None:
    page = context.new_page()
    page.goto("/docs/")
    page.get_by_text("viem", exact=True).click()
    call = copied(page, "the call for viem")
    assert "createPublicClient" in call and "/v3/YOUR_KEY" in call
    check_page(page, "quickstart")
