"""Looks at pages in both colour schemes and widths: with axe, and as pictures.

`SCREENSHOTS=folder` keeps the pictures, with `make test-wallet-clients` as well.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

FOLDER = os.environ.get("SCREENSHOTS")

WIDTHS = {"desk": 1280, "phone": 390}
"""Widths of windows in pixels."""

HEIGHT = 900

Scheme = Literal["light", "dark"]

RULES: dict[Scheme, list[str]] = {
    "light": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
    "dark": ["color-contrast"],
}
"""axe's rules: the tags of WCAG 2.2 up to AA and of good practice. In the dark scheme only
the colours differ."""

_ANIMATIONS_END = """
    Promise.allSettled(
        document.getAnimations()
            .filter((one) => one.effect.getComputedTiming().endTime < Infinity)
            .map((one) => one.finished)
    ).then(() => true)
"""
"""Colours have too little contrast in the middle of a transition, and a button that can be
pressed after a moment is pale until then. Transitions of Django's admin can be cancelled."""


def check_page(page: Page, name: str, part: str = "html") -> None:
    """Assert that a page fits both widths, and that axe finds nothing in either scheme.

    name: that of the pictures. part: a selector of the part that axe checks.
    """
    for scheme in RULES:
        page.emulate_media(color_scheme=scheme)
        for width_name, width in WIDTHS.items():
            set_width(page, width)
            assert width_of(page) <= width, (name, width_name)
            take_picture(page, f"{name}-{scheme}-{width_name}")
        assert list(violations(page, scheme, [part])) == [], name
    page.emulate_media(color_scheme="light")
    set_width(page, WIDTHS["desk"])


def set_width(page: Page, width: int) -> None:
    """Give the window of a page a width in pixels."""
    page.set_viewport_size({"width": width, "height": HEIGHT})


def width_of(page: Page) -> int:
    """Return the width of a page's content in pixels."""
    return int(page.evaluate("document.documentElement.scrollWidth"))


def take_picture(page: Page, name: str) -> None:
    """Save a picture of the whole page, if a folder is named."""
    if FOLDER:
        page.screenshot(path=Path(FOLDER) / f"{name}.png", full_page=True)


def violations(page: Page, scheme: Scheme, parts: Sequence[str]) -> Iterator[str]:
    """Yield each element that violates one of axe's rules, with the rule and the reason.

    parts: selectors of the parts of the page. Missing ones are left out.
    """
    context = [[part] for part in parts if page.locator(part).count()]
    if not context:
        return
    page.evaluate(_ANIMATIONS_END)
    options = {
        "resultTypes": ["violations"],
        "runOnly": RULES[scheme],
        # It writes style sheets of Django's admin into the page, against its policy.
        "preload": False,
    }
    found = Axe().run(page, context={"include": context}, options=options)
    for violation in found.response["violations"]:
        for node in violation["nodes"]:
            summary = node["failureSummary"].replace("\n", " ")
            yield f"({scheme}) {violation['id']}: {node['html'][:200]}: {summary}"
