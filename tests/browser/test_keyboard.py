"""Keyboard navigation: the Tab key moves through a page in the order of its text."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from keys.models import User
from keys.services import IssuedKey, issue_key
from tests.browser.conftest import PASSWORD, sign_in
from tests.support.browser import needs_chromium
from tests.support.live import Live
from tests.support.look import WIDTHS, set_width

pytestmark = needs_chromium

PLACES = [
    *("/", "/docs/", "/docs/console", "/docs/errors", "/account/password"),
    *("/explore/", "/explore/sample/"),
    *("/dashboard/", "/dashboard/keys/new", "/dashboard/keys/{key}"),
    *(
        f"/dashboard/keys/{{key}}/{page}"
        for page in ("connect", "usage", "tracing", "tracing/sample", "allowlists")
    ),
    *("/dashboard/keys/{key}/roll", "/dashboard/keys/{key}/delete", "/wallet/"),
]

MOST = 60
"""Maximum number of checked elements on a page. Some pages have a link in each row."""

STOPS = """
    [...document.querySelectorAll("a[href], button, input, select, textarea, summary")]
    .filter((one) => one.type !== "hidden" && !one.disabled && one.tabIndex >= 0
        && one.checkVisibility())
    // Of buttons that exclude each other the chosen one is a stop.
    .filter((one) => one.type !== "radio" || one.checked)
"""

FOCUS_IS_SETTLED = """() => {
    const wanted = document.querySelector("[autofocus]");
    return !wanted || document.activeElement === wanted;
}"""

IS_DRAWN = """() => new Promise((done) =>
    requestAnimationFrame(() => requestAnimationFrame(done)))"""
"""Resolves when the page is drawn in its present width. Scripts then know the width, and no
frame is still wider than the window, which the Tab key would stop at to let it scroll."""

MEASURE = f"""() => {{
    const measure = () => {{
        const one = document.activeElement, box = one.getBoundingClientRect();
        // The part in the window: a tall field is scrolled only as far as its cursor.
        const top = Math.max(box.top, 0), bottom = Math.min(box.bottom, innerHeight);
        const middle = document.elementFromPoint(
            box.x + Math.min(box.width, innerWidth) / 2, (top + bottom) / 2);
        return {{
            place: {STOPS.strip()}.indexOf(one),
            name: one.outerHTML.slice(0, 120),
            isShown: !!middle && (one.contains(middle) || middle.contains(one)),
            isMarked: getComputedStyle(one).outlineStyle !== "none",
        }};
    }};
    // Each key press finds the element that the one before has reached.
    if (!window.reached) addEventListener("keydown", () => reached.push(measure()), true);
    window.reached = [];
    document.activeElement.blur();
    scrollTo({{ top: 0, behavior: "instant" }});
    return {STOPS.strip()}.length;
}}"""
"""Measures the element with the focus at each key press, returns the number of stops."""

HEADER = """[...document.querySelectorAll("header a, header button")].map((one) => {
    const { top, bottom, left, right } = one.getBoundingClientRect();
    return { name: one.innerText, top, bottom, left, right };
})"""


@pytest.fixture(scope="module")
def issued(live: Live) -> IssuedKey:
    owner = User.objects.create_user("keyboard@example.org", PASSWORD)
    return issue_key(owner=owner, name="Indexer", may_trace=True)


def stops(page: Page) -> list[dict[str, Any]]:
    """Press Tab repeatedly from the top; return each element that gets the focus."""
    count = min(MOST, page.evaluate(MEASURE))
    page.mouse.click(2, 2)
    for _ in range(count + 1):
        page.keyboard.press("Tab")
    reached: list[dict[str, Any]] = page.evaluate("reached")
    return reached[1:]


def test_tab_leads_through_a_page_in_the_order_of_its_text(
    context: BrowserContext, live: Live, issued: IssuedKey
) -> None:
    sign_in(context, live, issued.api_key.owner)
    page = context.new_page()
    for place in PLACES:
        answer = page.goto(place.format(key=issued.api_key.pk))
        assert answer is not None and answer.status == 200, place
        # On a page that focuses a field, Tab would begin there.
        page.wait_for_function(FOCUS_IS_SETTLED)
        for width in WIDTHS.values():
            set_width(page, width)
            page.evaluate(IS_DRAWN)
            reached = stops(page)
            assert len(reached) > 5, place
            order = [one["place"] for one in reached]
            assert order == list(range(len(reached))), (place, width)
            for one in reached:
                assert one["isShown"], (place, width, one["name"])
                assert one["isMarked"], (place, width, one["name"])


@pytest.mark.parametrize("visitor", ["stranger", "customer", "staff"])
def test_header_is_shown_in_the_order_in_which_tab_leads_through_it(
    context: BrowserContext, live: Live, visitor: str
) -> None:
    if visitor != "stranger":
        name, is_staff = f"{visitor}@example.org", visitor == "staff"
        user = User.objects.create_user(name, PASSWORD, is_staff=is_staff)
        sign_in(context, live, user)
    page = context.new_page()
    page.goto("/docs/")
    for width in WIDTHS.values():
        set_width(page, width)
        boxes = page.evaluate(HEADER)
        assert len(boxes) >= 3
        for before, after in pairwise(boxes):
            is_below = after["top"] >= before["bottom"]
            is_beside = after["left"] >= before["right"]
            is_level = after["bottom"] > before["top"]
            assert is_below or (is_beside and is_level), (before, after)


def test_keyboard_reaches_the_content_past_the_navigation(
    context: BrowserContext, live: Live
) -> None:
    page = context.new_page()
    page.goto("/")
    page.keyboard.press("Tab")
    skip = page.get_by_role("link", name="Skip to the content")
    expect(skip).to_be_focused()
    expect(skip).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(page.get_by_role("main")).to_be_focused()
