"""Headless Chromium, if it is installed."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    Page,
    expect,
    sync_playwright,
)

from tests.support.waiting import PATIENCE_SECONDS, Found

expect.set_options(timeout=1000 * PATIENCE_SECONDS)

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")

needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="there is no Chromium here"
)


@contextmanager
def running_chromium() -> Iterator[Browser]:
    """Run a Chromium that connects only to the sites of the pages.

    Playwright leaves an event loop in this thread, because of which Django would refuse
    database access. Nothing runs on this loop in the meantime.
    """
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
    arguments = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=CHROMIUM, args=arguments
            )
            yield browser
            browser.close()
    finally:
        del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


def until(page: Page, condition: Callable[[], Found]) -> Found:
    """Wait until a condition on a page is truthy, and return its value."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (found := condition()):
        assert time.monotonic() < deadline, "it does not come about"
        page.wait_for_timeout(25)
    return found


def log_in(context: BrowserContext, base_url: str, session: str) -> None:
    """Give a browser the session of a user who has logged in."""
    context.add_cookies([{"name": "sessionid", "value": session, "url": base_url}])
