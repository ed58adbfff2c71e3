"""Keyboard navigation: the Tab key moves through a page in the order of its text."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from keys.models import User
from keys.services import IssuedKey, issue_key
from tests.browser.conftest import PASSWORD, sign_in
from tests.support.browser import needs_chromium
from tests.support.live import Live
from tests.support.look import WIDTHS

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

FOCUSED = f"""() => {{
    const one = document.activeElement, box = one.getBoundingClientRect();
    // Of what is in the window: a tall field is only scrolled as far as its cursor.
    const top = Math.max(box.top, 0), bottom = Math.min(box.bottom, innerHeight);
    const middle = document.elementFromPoint(
        box.x + Math.min(box.width, innerWidth) / 2, (top + bottom) / 2);
    return {{
        place: {STOPS.strip()}.indexOf(one),
        name: one.outerHTML.slice(0, 120),
        isShown: !!middle && (one.contains(middle) || middle.contains(one)),
        isMarked: getComputedStyle(one).outlineStyle !== "none",
    }};
}}"""


HEADER = """[...document.querySelectorAll("header a, header button")].map((one) => {
    const { top, bottom, left, right } = one.getBoundingClientRect();
    return { name: one.innerText, top, bottom, left, right };
})"""


@pytest.fixture(scope="module")
def issued(live: Live) -> IssuedKey:
    owner = User.objects.create_user("keyboard@example.org", PASSWORD)
    return issue_key(owner=owner, name="Indexer", may_trace=True)


def stops(page: Page) -> Iterator[dict[str, Any]]:
    """Press Tab repeatedly; yield each element that gets the focus."""
    for _ in range(min(MOST, page.evaluate(f"{STOPS.strip()}.length"))):
        page.keyboard.press("Tab")
        yield page.evaluate(FOCUSED)


@pytest.mark.parametrize("width", WIDTHS.values(), ids=WIDTHS)
def test_tab_leads_through_a_page_in_the_order_of_its_text(
    context: BrowserContext, live: Live, issued: IssuedKey, width: int
) -> None:
    sign_in(context, live, issued.api_key.owner)
    page = context.new_page()
    page.set_viewport_size({"width": width, "height": 900})
    for place in PLACES:
        answer = page.goto(place.format(key=issued.api_key.pk))
        assert answer is not None and answer.status == 200, place
        # On a page that focuses a field, Tab would begin there.
        page.wait_for_function(FOCUS_IS_SETTLED)
        page.mouse.click(2, 2)
        reached = list(stops(page))
        assert len(reached) > 5, place
        assert [one["place"] for one in reached] == list(range(len(reached))), place
        for one in reached:
            assert one["isShown"], (place, one["name"])
            assert one["isMarked"], (place, one["name"])


@pytest.mark.parametrize("width", WIDTHS.values(), ids=WIDTHS)
@pytest.mark.parametrize("visitor", ["stranger", "customer", "staff"])
def test_header_is_shown_in_the_order_in_which_tab_leads_through_it(
    context: BrowserContext, live: Live, visitor: str, width: int
) -> None:
    if visitor != "stranger":
        name, is_staff = f"{visitor}-{width}@example.org", visitor == "staff"
        user = User.objects.create_user(name, PASSWORD, is_staff=is_staff)
        sign_in(context, live, user)
    page = context.new_page()
    page.set_viewport_size({"width": width, "height": 900})
    page.goto("/docs/")
    boxes = page.evaluate(HEADER)
    assert len(boxes) >= 3
    for before, after in pairwise(boxes):
        is_below = after["top"] >= before["bottom"]
        is_beside = after["left"] >= before["right"] and after["bottom"] > before["top"]
        assert is_below or is_beside, (before, after)


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
