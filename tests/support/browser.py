"""Headless Chromium, if it is installed."""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from asyncio import _set_running_loop
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    WebError,
    expect,
    sync_playwright,
)

from tests.support.waiting import PATIENCE_SECONDS, Found

expect.set_options(timeout=1000 * PATIENCE_SECONDS)

_PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser")

CHROMIUM = next(filter(None, map(shutil.which, _PROGRAMS)), None)
"""The first has no window, and needs half of the others' processor time."""

needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="there is no Chromium here"
)


def close_lost() -> None:
    """Close the connection to the database if it was terminated.

    Django has one connection while the event loop of a browser is visible, and another
    one for everything else in this thread.
    """
    if connection.connection is not None and not connection.is_usable():
        connection.close()


class Chromium:
    """A Chromium that connects only to the sites of the pages, for all tests of a process.

    Between its calls, Playwright leaves an event loop behind that stands still and that
    asyncio takes for the running one of this thread. It is hidden from tests without a
    browser, which run event loops of their own.
    """

    def __init__(self) -> None:
        self._playwright = sync_playwright().start()
        self._loop = asyncio.get_running_loop()
        arguments = [
            "--no-sandbox",
            "--disable-gpu",
            "--disable-background-networking",
            # A page's first address does not start another process.
            "--renderer-process-limit=1",
            # Pages run for less time than it takes to optimize their code.
            "--js-flags=--no-opt --no-maglev",
        ]
        self._browser = self._playwright.chromium.launch(
            executable_path=CHROMIUM, args=arguments
        )
        _set_running_loop(None)

    @contextmanager
    def lent(self) -> Iterator[Browser]:
        """Lend the browser; its contexts are closed afterwards."""
        _set_running_loop(self._loop)
        # Django would refuse its database because of the loop, on which nothing runs.
        os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
        try:
            close_lost()
            yield self._browser
            for context in self._browser.contexts:
                context.close()
        finally:
            del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]
            _set_running_loop(None)

    def close(self) -> None:
        """End the browser and Playwright."""
        with self.lent():
            self._browser.close()
            self._playwright.stop()


def until(page: Page, condition: Callable[[], Found]) -> Found:
    """Wait until a condition on a page is truthy, and return its value."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (found := condition()):
        assert time.monotonic() < deadline, "it does not come about"
        page.wait_for_timeout(25)
    return found


_END_HOLDS = """
    addEventListener("animationstart", ({ animationName, target }) => {
        if (animationName !== "hold") return;
        target.getAnimations().forEach((one) => one.finish());
    });
"""


def end_holds(context: BrowserContext) -> None:
    """Let buttons be pressed at once that otherwise can't be in their first second."""
    context.add_init_script(_END_HOLDS)


def log_in(context: BrowserContext, base_url: str, session: str) -> None:
    """Give a browser the session of a user who has logged in."""
    context.add_cookies([{"name": "sessionid", "value": session, "url": base_url}])


@contextmanager
def kept_context(browser: Browser, **options: Any) -> Iterator[BrowserContext]:
    """Open a browser for several tests, in which buttons can be pressed at once.

    Its first page stays open, because a renderer process ends with its last page.
    """
    with browser.new_context(**options) as context:
        end_holds(context)
        context.new_page()
        yield context


@contextmanager
def emptied(context: BrowserContext, faults: list[str]) -> Iterator[None]:
    """Collect the errors in pages; at the end, close the pages and log out.

    context: one of `kept_context`.
    """

    def logged(line: ConsoleMessage) -> None:
        faults.append(line.text)

    def failed(error: WebError) -> None:
        faults.append(str(error.error))

    context.on("console", logged)
    context.on("weberror", failed)
    yield
    for page in context.pages[1:]:
        page.close()
    context.remove_listener("console", logged)
    context.remove_listener("weberror", failed)
    context.clear_cookies()
