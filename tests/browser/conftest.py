from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from axe_playwright_python.sync_playwright import Axe
from django.test import Client
from playwright.sync_api import Browser, BrowserContext, Page

from config import demo
from keys.models import User
from tests.support import web
from tests.support.browser import log_in, running_chromium
from tests.support.live import Live, live_service
from tests.support.waiting import wait_until

PASSWORD = "correct horse battery"
WIDTHS = {"desk": 1280, "phone": 390}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with running_chromium() as running:
        yield running


@pytest.fixture(scope="module")
def live(module_db: None) -> Iterator[Live]:
    """Serve the sample chain to tests that bring users of their own."""
    demo.import_sample_chain()
    with live_service() as running:
        yield running


@pytest.fixture
def context(browser: Browser, live: Live) -> Iterator[BrowserContext]:
    """Return a browser with clipboard access. Errors in a page fail the test."""
    faults: list[str] = []
    context = browser.new_context(
        base_url=live.base_url, permissions=["clipboard-read", "clipboard-write"]
    )
    context.on("console", lambda line: faults.append(line.text))
    context.on("weberror", lambda error: faults.append(str(error.error)))
    yield context
    context.close()
    assert faults == []


def sign_in(context: BrowserContext, live: Live, user: User) -> None:
    """Give a browser the session of a user who has logged in."""
    client = Client()
    client.force_login(user)
    log_in(context, live.base_url, client.cookies["sessionid"].value)


def mailed_path(live: Live, place: str) -> str:
    """Return the path of the last link below a place that the service has mailed."""
    link = rf"http://127\.0\.0\.1:\d+({place}/\S+)"
    return str(wait_until(lambda: re.findall(link, live.log()))[-1])


def copied(page: Page, what: str) -> str:
    """Press a button that copies, and return what is in the clipboard then."""
    button = page.get_by_role("button", name=f"Copy {what}", exact=True)
    button.click()
    page.get_by_role("status").get_by_text(f"Copied {what}").wait_for()
    return str(page.evaluate("navigator.clipboard.readText()"))


RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
"""Tags of axe's rules: those of WCAG 2.2 up to AA, and good practice."""


ANIMATIONS_END = """Promise.allSettled(
    document.getAnimations().map((one) => one.finished)
).then(() => true)"""
"""Waits for transitions of colours. Those of the admin can also be cancelled."""


def check_page(page: Page, name: str, part: str = "html") -> None:
    """Check a page that is open in both schemes and widths. part: a selector."""
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        for width in WIDTHS.values():
            page.set_viewport_size({"width": width, "height": 900})
            wide = page.evaluate("document.documentElement.scrollWidth")
            assert wide <= width, (name, wide)
        page.evaluate(ANIMATIONS_END)
        # Without "preload", which writes style sheets of Django's admin into the page.
        options = {"resultTypes": ["violations"], "runOnly": RULES, "preload": False}
        found = Axe().run(page, context=part, options=options)
        violations = found.response["violations"]
        assert violations == [], (name, scheme, found.generate_report())
    page.emulate_media(color_scheme="light")
    page.set_viewport_size({"width": WIDTHS["desk"], "height": 900})


def ask(live: Live, key: str, method: str, *params: Any) -> httpx.Response:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": list(params)}
    return web.post(f"{live.base_url}/sample/v3/{key}", json=body)
