"""Headless Chromium, where the machine has one."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, BrowserContext, expect, sync_playwright

# Milliseconds: a page may take its time where other tests run beside.
expect.set_options(timeout=30_000)

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")

needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="there is no Chromium here"
)


@contextmanager
def running_chromium() -> Iterator[Browser]:
    """Run a Chromium that asks nobody but the pages' own sites.

    Playwright leaves an event loop in this thread, and Django would refuse its database
    for that; there is nothing that runs on it meanwhile.
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


def log_in(context: BrowserContext, base_url: str, session: str) -> None:
    """Give a browser the session of a user who has logged in."""
    context.add_cookies([{"name": "sessionid", "value": session, "url": base_url}])
