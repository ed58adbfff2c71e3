"""Looks at pages in both colour schemes and widths: with axe, and as pictures.

`SCREENSHOTS=folder` keeps the pictures, with `make test-wallet-clients` as well.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Page

FOLDER = os.environ.get("SCREENSHOTS")

WIDTHS = {"desk": 1280, "phone": 390}
"""Widths of windows in pixels."""

HEIGHT = 900

Scheme = Literal["light", "dark"]

SCHEMES: tuple[Scheme, ...] = ("light", "dark")

TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
"""axe's rules of WCAG 2.2 up to AA and of good practice."""

CONTRAST = "color-contrast"
"""axe's rule that depends on the colour scheme."""

_END_ANIMATIONS = """
    document.getAnimations()
        .filter((one) => one.effect.getComputedTiming().endTime < Infinity)
        .forEach((one) => one.finish())
"""
"""Colours have too little contrast in the middle of a transition, and a button that can be
pressed after a moment is pale until then."""

_MARK_ALIKE = """() => {
    const shapes = new Map();
    const measure = (one) => {
        const names = [...one.attributes].map((each) => each.name);
        const inner = [...one.children].map(measure);
        const shape = `${one.localName}.${one.getAttribute("class")}[${names}](${inner})`;
        shapes.set(one, shape);
        return shape;
    };
    const mark = (parent) => {
        const seen = new Set();
        [...parent.children].forEach((one, index) => {
            const kind = `${index % 2}${shapes.get(one)}`;
            if (seen.has(kind)) one.setAttribute("data-alike", "");
            else mark(one);
            seen.add(kind);
        });
    };
    measure(document.body);
    mark(document.body);
}"""
"""Marks elements that have an earlier sibling with the same elements, classes and names of
attributes, as most rows of a long table. Since no element has a style of its own, their
colours are the same. Every second row may have another background."""

_UNMARK = """
    document.querySelectorAll("[data-alike]").forEach(
        (one) => one.removeAttribute("data-alike"))
"""

_PRESENT = "(parts) => parts.filter((one) => document.querySelector(one))"

_RUN_AXE = """([context, options]) =>
    axe.run(context, options).then((found) => found.violations)
"""

_WITH_FLAT_FONT = """(isFlat) => {
    const sheet = new CSSStyleSheet();
    if (isFlat) sheet.replaceSync(`
        @font-face {
            font-family: flat;
            src: local("DejaVu Sans"), local("Liberation Sans"), local("Arial");
            ascent-override: 78%; descent-override: 22%; line-gap-override: 0%;
        }
        * { font-family: flat !important; }
    `);
    document.adoptedStyleSheets = [sheet];
    return document.fonts.ready.then(() => true);
}"""
"""Sets all text in a font whose lines are as low as any's, which makes links small: targets
have to be large enough on machines with other fonts, too."""

_LOW_TARGETS = """
    [...document.querySelectorAll(
        "a[href], button, input:not([type=hidden]), select, textarea, summary"
    )]
    .filter((one) => one.checkVisibility() && !one.closest("svg, [aria-hidden=true]"))
    // Who presses the label of a box ticks it, too. Boxes without labels are small.
    .map((one) => /checkbox|radio/.test(one.type) ? one.labels[0] : one)
    .filter((one) => one?.checkVisibility())
    .map((one) => [one.getBoundingClientRect().height, one.outerHTML.slice(0, 200)])
    .filter(([height]) => height < 23.9)
    .map(([height, shown]) => `${height} px high instead of 24: ${shown}`)
"""
"""Describes the targets that are too low. axe accepts these if their neighbours happen to be
far enough away, which depends on the font."""


def check_page(page: Page, name: str, part: str = "html") -> None:
    """Assert that a page fits both widths, and that axe finds nothing in either scheme.

    name: that of the pictures. part: a selector of the part that axe checks.
    """
    for width_name, width in WIDTHS.items():
        set_width(page, width)
        assert width_of(page) <= width, (name, width_name)
        take_pictures(page, f"{name}-{width_name}")
    found = [one for scheme in SCHEMES for one in violations(page, scheme, [part])]
    assert not found, "\n".join((name, *found))
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


def take_pictures(page: Page, name: str) -> None:
    """Save a picture in each colour scheme, if a folder is named."""
    for scheme in SCHEMES if FOLDER else ():
        page.emulate_media(color_scheme=scheme)
        take_picture(page, f"{name}-{scheme}")


def violations(page: Page, scheme: Scheme, parts: Sequence[str]) -> Iterator[str]:
    """Yield each element that violates one of axe's rules, with the reason and measures.

    scheme: the colour scheme to set. In the light one, all rules are checked.
    parts: selectors of the parts of the page. Missing ones are left out.
    """
    included = page.evaluate(_PRESENT, parts)
    if not included:
        return
    page.emulate_media(color_scheme=scheme)
    page.evaluate(_END_ANIMATIONS)
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE_SCRIPT)
        page.add_init_script(AXE_SCRIPT)  # for the next addresses: it takes less time
    if scheme == "light":
        page.evaluate(_WITH_FLAT_FONT, True)
        yield from page.evaluate(_LOW_TARGETS)
        others = {CONTRAST: {"enabled": False}}
        yield from _axe(page, {"include": included}, {"runOnly": TAGS, "rules": others})
        page.evaluate(_WITH_FLAT_FONT, False)
    page.evaluate(_MARK_ALIKE)
    context = {"include": included, "exclude": [["[data-alike]"]]}
    for fault in _axe(page, context, {"runOnly": [CONTRAST]}):
        yield f"({scheme}) {fault}"
    page.evaluate(_UNMARK)


def _axe(page: Page, context: dict[str, Any], options: dict[str, Any]) -> Iterator[str]:
    """Yield what axe finds in a part of a page."""
    options = {
        **options,
        "resultTypes": ["violations"],
        # It writes style sheets of Django's admin into the page, against its policy.
        "preload": False,
    }
    for violation in page.evaluate(_RUN_AXE, [context, options]):
        for node in violation["nodes"]:
            summary = node["failureSummary"].replace("\n", " ")
            measured = [one["data"] for one in node["any"] if one["data"]]
            yield (
                f"{violation['id']}: {node['target']}: {node['html'][:200]}: "
                f"{summary} Measured: {measured}"
            )
