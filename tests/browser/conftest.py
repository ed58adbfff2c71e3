from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from django.test import Client
from playwright.sync_api import Browser, BrowserContext, Page

from keys.models import User
from tests.support import copies, web
from tests.support.browser import emptied, kept_context, log_in
from tests.support.live import Live, live_service
from tests.support.waiting import wait_until

PASSWORD = "correct horse battery"


@pytest.fixture(scope="module")
def live(module_db: None) -> Iterator[Live]:
    """Serve the sample chain to tests that create their own users."""
    copies.demo_chain()
    with live_service() as running:
        yield running


@pytest.fixture(scope="module")
def shared_context(browser: Browser, live: Live) -> Iterator[BrowserContext]:
    """Return a browser with clipboard access, whose cache the tests of a module share."""
    with kept_context(
        browser,
        base_url=live.base_url,
        permissions=["clipboard-read", "clipboard-write"],
    ) as context:
        yield context


@pytest.fixture
def context(shared_context: BrowserContext) -> Iterator[BrowserContext]:
    """Return a browser without a session. Errors in a page fail the test."""
    faults: list[str] = []
    with emptied(shared_context, faults):
        yield shared_context
    assert faults == []


@pytest.fixture
def own_context(browser: Browser, live: Live) -> Iterator[BrowserContext]:
    """Return a browser of this test only, because all its pages have the same clock."""
    faults: list[str] = []
    with (
        kept_context(browser, base_url=live.base_url) as context,
        emptied(context, faults),
    ):
        yield context
    assert faults == []


def sign_in(context: BrowserContext, live: Live, user: User) -> None:
    """Give a browser the session of a user who has logged in."""
    client = Client()
    client.force_login(user)
    log_in(context, live.base_url, client.cookies["sessionid"].value)


def mailed_path(live: Live, place: str) -> str:
    """Return the path of the last emailed link that begins with `place`."""
    link = rf"http://127\.0\.0\.1:\d+({place}/\S+)"
    return str(wait_until(lambda: re.findall(link, live.log()))[-1])


def copied(page: Page, what: str) -> str:
    """Press a copy button, and return the content of the clipboard."""
    button = page.get_by_role("button", name=f"Copy {what}", exact=True)
    button.click()
    page.get_by_role("status").get_by_text(f"Copied {what}").wait_for()
    return str(page.evaluate("navigator.clipboard.readText()"))


def ask(live: Live, key: str, method: str, *params: Any) -> httpx.Response:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": list(params)}
    return web.post(f"{live.base_url}/sample/v3/{key}", json=body)
