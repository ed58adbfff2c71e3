"""The check of contrasts finds pale text, also beside text that it has accepted."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from tests.support.browser import needs_chromium
from tests.support.look import Scheme, violations

pytestmark = needs_chromium

STYLES = """
    p { color: rgb(1, 2, 3); background: white; }
    .dark { background: black; }
    .faint { opacity: 0.2; }
    @media (prefers-color-scheme: dark) { p { background: rgb(40, 40, 40); } }
"""


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    with browser.new_context() as context:
        yield context.new_page()


def pale(page: Page, body: str, scheme: Scheme = "light") -> list[str]:
    """Return what is found about contrasts in a page with a body."""
    page.set_content(f"<style>{STYLES}</style><main>{body}</main>")
    found = violations(page, scheme, ["main"])
    return [one for one in found if one.startswith("color-contrast")]


def test_pale_text_is_found_beside_text_that_was_accepted(page: Page) -> None:
    plain = "<p>as it is</p>"
    assert pale(page, plain) == []
    for body in (
        "<p class=dark>on another background</p>",
        "<p><b class=dark>within another background</b></p>",
        "<div class=faint><p>in what is faint</p></div>",
    ):
        assert len(pale(page, plain + body)) == 1
    for _ in range(2):  # what was found is not accepted
        assert len(pale(page, plain, "dark")) == 1
