"""Looks at pages in both colour schemes and widths: with axe, and as pictures.

`SCREENSHOTS=folder` keeps the pictures, with `make test-wallet-clients` as well.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Page, ViewportSize

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

_AXE = (
    f"{AXE_SCRIPT};"
    + """
(() => {
    // The contrast of a text depends on its colour and font, and on what is behind it: the
    // backgrounds of the elements around it, and boxes that are moved there.
    const styles = new Map();
    const around = (one) => {
        if (!one) return "";
        if (!styles.has(one)) {
            const { backgroundColor, backgroundImage, opacity, filter, position, float } =
                getComputedStyle(one);
            const own = [backgroundColor, backgroundImage, opacity, filter].join();
            const isMoved = position !== "static" || float !== "none";
            const name = isMoved ? `${one.localName}.${one.getAttribute("class")}` : "";
            const outer = around(one.parentElement);
            const isPlain = !name && own === "rgba(0, 0, 0, 0),none,1,none";
            styles.set(one, isPlain ? outer : `${outer}/${own},${name}`);
        }
        return styles.get(one);
    };
    const look = (one) => {
        const { color, fontSize, fontWeight, textShadow } = getComputedStyle(one);
        return `${around(one)}/${color},${fontSize},${fontWeight},${textShadow}`;
    };
    const rule = axe._audit.rules.find(({ id }) => id === "color-contrast");
    const check = axe._audit.checks["color-contrast"];
    const { matches } = rule, { evaluate } = check;
    rule.matches = function (one, ...more) {
        return !axe.accepted.has(look(one)) && matches.call(this, one, ...more);
    };
    check.evaluate = function (one, ...more) {
        const found = evaluate.call(this, one, ...more);
        // It accepts all hidden text.
        const isShown = one.checkVisibility({ visibilityProperty: true });
        if (found === true && isShown) axe.accepted.add(look(one));
        return found;
    };
    axe.lookAnew = (accepted) => {
        styles.clear();
        axe.accepted = new Set(accepted);
    };
})();
"""
)
"""axe, which checks the contrast of text once that looks alike, see `axe.lookAnew`."""

_ACCEPTED: set[str] = set()
"""Looks of text whose contrast axe has accepted, on any page in this process."""

_LOOK = """async ([parts, rules, isFirst, accepted]) => {
    // Rows of a long table that have the same elements, classes and names of attributes as
    // ten others.
    const findAlike = () => {
        const shapes = new Map();
        const measure = (one) => {
            const names = [...one.attributes].map((each) => each.name);
            const inner = [...one.children].map(measure);
            const shape = `${one.localName}.${one.getAttribute("class")}[${names}](${inner})`;
            shapes.set(one, shape);
            return shape;
        };
        measure(document.body);
        const counts = new Map();
        return [...document.querySelectorAll("tr, li, label")].filter((one) => {
            if (!counts.has(one.parentElement)) counts.set(one.parentElement, new Map());
            const count = counts.get(one.parentElement), shape = shapes.get(one);
            count.set(shape, (count.get(shape) ?? 0) + 1);
            return count.get(shape) > 10;
        });
    };

    // Sets all text in a font whose lines are as low as any's, which makes links small:
    // targets have to be large enough on machines with other fonts, too.
    const flatFont = `
        @font-face {
            font-family: flat;
            src: local("DejaVu Sans"), local("Liberation Sans"), local("Arial");
            ascent-override: 78%; descent-override: 22%; line-gap-override: 0%;
        }
        * { font-family: flat !important; }
    `;

    // axe accepts targets that are too low if their neighbours happen to be far enough
    // away, which depends on the font.
    const lowTargets = () =>
        [...document.querySelectorAll(
            "a[href], button, input:not([type=hidden]), select, textarea, summary"
        )]
        .filter((one) => one.checkVisibility() && !one.closest("svg, [aria-hidden=true]"))
        // Who presses the label of a box ticks it, too. Boxes without labels are small.
        .map((one) => /checkbox|radio/.test(one.type) ? one.labels[0] : one)
        .filter((one) => one?.checkVisibility())
        .map((one) => [one.getBoundingClientRect().height, one.outerHTML.slice(0, 200)])
        .filter(([height]) => height < 23.9)
        .map(([height, shown]) => `${height} px high instead of 24: ${shown}`);

    const include = parts.filter((one) => document.querySelector(one));
    if (!include.length) return [[], [], accepted];
    if (!window.axe) return null;
    // Colours have too little contrast in the middle of a transition, and a button that can
    // be pressed after a moment is pale until then.
    document.getAnimations()
        .filter((one) => one.effect.getComputedTiming().endTime < Infinity)
        .forEach((one) => one.finish());
    const alike = findAlike();
    alike.forEach((one) => one.setAttribute("data-alike", ""));
    const sheet = new CSSStyleSheet();
    const leftOut = "[data-alike] { display: none !important; }";
    sheet.replaceSync(leftOut + (isFirst ? flatFont : ""));
    document.adoptedStyleSheets = [sheet];
    await document.fonts.ready;
    const low = isFirst ? lowTargets() : [];
    axe.lookAnew(accepted.split("\\n"));
    // With `preload`, it would write style sheets of Django's admin into the page, against
    // its policy.
    const options = { runOnly: rules, resultTypes: ["violations"], preload: false };
    const { violations } = await axe.run({ include }, options);
    document.adoptedStyleSheets = [];
    alike.forEach((one) => one.removeAttribute("data-alike"));
    return [low, violations, [...axe.accepted].join("\\n")];
}"""
"""Returns descriptions of targets that are too low, what axe finds, and the looks of text whose
contrast is accepted; null without axe.

It is one function, because each call of the browser takes 5 ms.
"""


def check_page(page: Page, name: str, part: str = "html") -> None:
    """Assert that a page fits both widths, and that axe finds nothing in either scheme.

    name: that of the pictures. part: a selector of the part that axe checks.
    """
    for width_name, width in WIDTHS.items():
        set_width(page, width)
        assert (wide := width_of(page)) <= width, (name, width_name, wide)
        take_pictures(page, f"{name}-{width_name}")
    found = [one for scheme in SCHEMES for one in violations(page, scheme, [part])]
    assert not found, "\n".join((name, *found))
    set_width(page, WIDTHS["desk"])


def set_width(page: Page, width: int) -> None:
    """Give the window of a page a width in pixels."""
    size: ViewportSize = {"width": width, "height": HEIGHT}
    if page.viewport_size != size:
        page.set_viewport_size(size)


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
    page.emulate_media(color_scheme=scheme)
    is_first = scheme == "light"
    rules = TAGS if is_first else [CONTRAST]
    arguments = [parts, rules, is_first, "\n".join(_ACCEPTED)]
    if (found := page.evaluate(_LOOK, arguments)) is None:
        page.evaluate(_AXE)
        page.add_init_script(_AXE)  # for the next addresses: it takes less time
        found = page.evaluate(_LOOK, arguments)
    low_targets, violated, accepted = found
    _ACCEPTED.update(accepted.split("\n"))
    yield from low_targets
    for violation in violated:
        for node in violation["nodes"]:
            summary = node["failureSummary"].replace("\n", " ")
            measured = [one["data"] for one in node["any"] if one["data"]]
            yield (
                f"{violation['id']} ({scheme}): {node['target']}: {node['html'][:200]}: "
                f"{summary} Measured: {measured}"
            )
