"""A customer edits all allowlists of a key on one page."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, expect

from keys.models import ApiKey, User
from keys.services import create_key, set_allowlist
from tests.browser.conftest import sign_in
from tests.support.browser import needs_chromium
from tests.support.live import Live
from tests.support.wallet import new_user

pytestmark = needs_chromium


@pytest.fixture
def user(live: Live) -> User:
    return new_user()


@pytest.fixture
def key(user: User) -> ApiKey:
    return create_key(owner=user, name="Indexer")


def entries(key: ApiKey) -> list[str]:
    return sorted(key.allowlist.values_list("value", flat=True))


def test_lists_are_saved_after_a_suggestion_was_followed(
    browser: Browser, live: Live, user: User, key: ApiKey
) -> None:
    # The console has a line about the response with status 400.
    context = browser.new_context(base_url=live.base_url)
    sign_in(context, live, user)
    page = context.new_page()
    page.goto(f"/dashboard/keys/{key.pk}/allowlists")
    page.get_by_label("Origins").fill("https://dapp.example/app")
    page.get_by_label("IP addresses").fill("192.0.2.7")
    picker = page.get_by_role("group", name="Methods")
    expect(picker).to_contain_text("None selected: all methods are allowed.")
    page.get_by_role("searchbox").fill("getlogs")
    expect(
        picker.get_by_role("checkbox", name=re.compile(r"^eth_chainId\b"))
    ).to_be_hidden()
    page.keyboard.press("Enter")  # searches, and sends nothing
    picker.get_by_role("checkbox", name=re.compile(r"^eth_getLogs\b")).check()
    page.get_by_role("searchbox").fill("no such method")
    expect(picker).to_contain_text("No method matches.")
    expect(
        picker.get_by_role("checkbox", name=re.compile(r"^eth_getLogs\b"))
    ).to_be_checked()
    expect(picker).to_contain_text("1 of 30 selected.")
    picker.get_by_text("Add methods by name").click()
    page.get_by_label("Names, one per line").fill("eth_cal")

    page.get_by_role("button", name="Save all lists").click()
    expect(page.get_by_role("alert")).to_contain_text("Nothing was saved.")
    main = page.get_by_role("main")
    expect(main).to_contain_text("Did you mean https://dapp.example?")
    expect(main).to_contain_text("Did you mean eth_call?")
    assert entries(key) == []
    expect(page.get_by_label("IP addresses")).to_have_value("192.0.2.7")
    page.get_by_role("alert").get_by_role("link", name="Origins").click()
    page.get_by_label("Origins").fill("https://dapp.example")
    page.get_by_label("Names, one per line").fill("eth_call")
    page.get_by_role("button", name="Save all lists").click()
    expect(page.get_by_role("status").first).to_contain_text("Saved.")
    assert entries(key) == [
        "192.0.2.7/32",
        "eth_call",
        "eth_getLogs",
        "https://dapp.example",
    ]
    context.close()


def test_methods_are_searched_and_selected_without_scripts(
    browser: Browser, live: Live, user: User, key: ApiKey
) -> None:
    set_allowlist(api_key=key, kind="method", values=["eth_call"])
    context = browser.new_context(base_url=live.base_url, java_script_enabled=False)
    sign_in(context, live, user)
    page = context.new_page()
    page.goto(f"/dashboard/keys/{key.pk}/allowlists")
    page.get_by_label("Origins").fill("https://dapp.example")
    page.get_by_role("searchbox").fill("getlogs")
    page.get_by_role("button", name="Search").click()
    expect(page.get_by_label("Origins")).to_have_value("https://dapp.example")
    expect(
        page.get_by_role("checkbox", name=re.compile(r"^eth_chainId\b"))
    ).to_have_count(0)
    page.get_by_role("checkbox", name=re.compile(r"^eth_getLogs\b")).check()
    page.get_by_role("button", name="Save all lists").click()
    expect(page.get_by_role("status").first).to_contain_text("Saved.")
    context.close()
    assert entries(key) == ["eth_call", "eth_getLogs", "https://dapp.example"]
