"""Checks of every page that each kind of visitor finds by following links.

A page that is added is found, or a test asks for it. To look at the
pages as well, name a folder: `SCREENSHOTS=/tmp/shots pytest tests/browser/test_every_page.py`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus
from operator import attrgetter

import httpx
import pytest
from django.contrib import admin
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request

from tests.support.browser import log_in, needs_chromium
from tests.support.crawl import DIFFERENT, Found, crawl, fixed_addresses
from tests.support.inhabited import SIGNED, Inhabitants, inhabit, logged_in
from tests.support.live import Live, live_service
from tests.support.look import (
    SCHEMES,
    WIDTHS,
    set_width,
    take_pictures,
    violations,
)

pytestmark = needs_chromium

WINDOW = (
    "/wallet/connect?origin=https%3A%2F%2Fother.example&state=s&code_challenge="
    + "a" * 43
)
"""The window that connect.js opens."""

STARTS = {
    "anonymous": ["/", "/account/mail", WINDOW],
    "customer": ["/", WINDOW],
    "member": ["/dashboard/members"],
    "staff": ["/admin/"],
}

WITHIN = {"member": "/dashboard/", "staff": "/admin/"}
"""By visitor, the prefixes of addresses that they follow. Other visitors follow all."""

POLICY = "content-security-policy"

OURS = [".front", ".usage", ".customer", ".question", ".issued", ".object-tools"]
"""The parts of the admin's pages that are not Django's."""


FAULTS_OF_DOCUMENT = """() => {
    const faults = [];
    for (const one of document.querySelectorAll("input, select, textarea")) {
        if (["hidden", "submit"].includes(one.type) || one.ariaHidden === "true") continue;
        if (one.checkVisibility() && !one.labels.length && !one.ariaLabel)
            faults.push(`no label: ${one.outerHTML}`);
    }
    // An element with the keyboard focus has to show it.
    const targets = "a[href], button, input, select, textarea, summary";
    for (const one of document.querySelectorAll(targets)) {
        if (one.type === "hidden" || !one.checkVisibility()) continue;
        one.focus({ focusVisible: true });
        if (document.activeElement === one && getComputedStyle(one).outlineStyle === "none")
            faults.push(`no sign of the focus: ${one.outerHTML}`);
    }
    document.activeElement.blur();
    return faults;
}"""

MEASURE = """[
    document.documentElement.scrollWidth,
    [...document.querySelectorAll(".table, #changelist .results")]
    .filter((one) => one.checkVisibility() && one.scrollWidth > one.clientWidth + 1)
    .map((one) => one.ariaLabel || one.querySelector("caption")?.textContent || one.className)
]"""
"""Returns the width of a page, and the names of tables that are wider than it."""


@dataclass(frozen=True, slots=True)
class Visitor:
    """A visitor with a browser. session: the session cookie; "" if not logged in.

    opened: the pages to open in the browser, with the information whether a page has kinds
        of elements that pages like it do not have which were opened before.
    """

    name: str
    session: str
    found: list[Found]
    opened: list[tuple[Found, bool]]


@pytest.fixture(scope="module")
def inhabitants(module_db: None) -> Inhabitants:
    return inhabit()


@pytest.fixture(scope="module")
def live(inhabitants: Inhabitants) -> Iterator[Live]:
    with live_service() as running:
        running.secrets += inhabitants.secrets
        yield running


@pytest.fixture(scope="module")
def visitors(live: Live, inhabitants: Inhabitants) -> dict[str, Visitor]:
    users = {
        "customer": inhabitants.customer,
        "member": inhabitants.member,
        "staff": inhabitants.staff,
    }
    starts = {
        **STARTS,
        "anonymous": STARTS["anonymous"] + inhabitants.mailed,
        "member": [f"{STARTS['member'][0]}?account={inhabitants.customer.pk}"],
    }
    visitors = {}
    seen: dict[str, set[str]] = {}
    for name, places in starts.items():
        user = users.get(name)
        session = logged_in(user).cookies["sessionid"].value if user else ""
        cookies = {"sessionid": session} if session else {}
        with httpx.Client(
            base_url=live.base_url, cookies=cookies, timeout=60
        ) as client:
            found = crawl(client, places, WITHIN.get(name, "/"))
            opened = list(_to_open(name, found, seen))
            visitors[name] = Visitor(name, session, found, opened)
    return visitors


def _to_open(
    visitor: str, found: list[Found], seen: dict[str, set[str]]
) -> Iterator[tuple[Found, bool]]:
    """Yield the first page of each view, and whether it has new kinds of elements.

    Of views that a visitor before has seen, and of the admin's forms, only pages with new
    kinds are opened; of the documentation only those of anonymous visitors. All lists of
    the admin are opened, since their columns differ.
    seen: by kind of page, the kinds of elements so far.
    """
    names = set()
    for one in found:
        name = one.address if one.name in DIFFERENT else one.name
        if not one.is_page or name in names:
            continue
        names.add(name)
        if name.startswith("docs:") and visitor != "anonymous":
            continue
        alike = re.sub(
            r"^admin:.*_(add|change|changelist|delete|do|history)$", r"\1", name
        )
        before = seen.setdefault(alike, set())
        is_new = not one.kinds <= before
        before |= one.kinds
        if is_new or alike == "changelist":
            yield one, is_new


def test_every_link_leads_somewhere(visitors: dict[str, Visitor]) -> None:
    for visitor in visitors.values():
        for one in visitor.found:
            assert one.answer.status_code == 200, (visitor.name, one.address)


def test_every_page_has_a_heading_a_title_a_language_and_a_policy(
    visitors: dict[str, Visitor],
) -> None:
    for visitor in visitors.values():
        for one in filter(attrgetter("is_page"), visitor.found):
            where, text = (visitor.name, one.address), one.answer.text
            assert len(re.findall("<h1[ >]", text)) == 1, where
            assert re.search(r"<title>\s*[^\s<]", text), where
            assert re.search('<html[^>]* lang="en', text), where
            policy = one.answer.headers[POLICY]
            directives = [directive.strip() for directive in policy.split(";")]
            assert directives.count("default-src 'none'") == 1, where
            assert {"base-uri 'none'", "frame-ancestors 'none'"} <= {*directives}, where
            assert "unsafe" not in policy, where


def test_every_page_with_a_fixed_address_is_visited(
    visitors: dict[str, Visitor], inhabitants: Inhabitants
) -> None:
    """Pages whose address has arguments are found if such an object exists."""
    found = {
        one.address.partition("?")[0]
        for visitor in visitors.values()
        for one in visitor.found
    }
    browser = logged_in(inhabitants.staff)
    for address in fixed_addresses("admin", "api") - found:
        # The address only accepts forms, or redirects to another page.
        status = browser.get(address).status_code
        assert status in (HTTPStatus.METHOD_NOT_ALLOWED, HTTPStatus.FOUND), address


def test_signatures_and_keys_that_wait_are_visited(
    visitors: dict[str, Visitor],
) -> None:
    names = Counter(one.name for one in visitors["customer"].found)
    assert names["wallet:signature"] == len(SIGNED)
    assert names["wallet:consent"]
    for page in ("account_create", "account_import", "key"):
        assert names[f"wallet:{page}"], page


def test_list_and_row_of_every_model_are_visited(
    visitors: dict[str, Visitor],
) -> None:
    found = {one.name for one in visitors["staff"].found}
    for model in admin.site._registry:
        name = f"admin:{model._meta.app_label}_{model._meta.model_name}"
        assert f"{name}_changelist" in found
        assert not model._default_manager.exists() or f"{name}_change" in found


@pytest.mark.parametrize("name", STARTS)
def test_pages_are_whole_and_usable(
    browser: Browser,
    live: Live,
    visitors: dict[str, Visitor],
    inhabitants: Inhabitants,
    name: str,
) -> None:
    visitor = visitors[name]
    faults: list[str] = []
    context = browser.new_context(base_url=live.base_url)
    if visitor.session:
        log_in(context, live.base_url, visitor.session)
    _listen(context, faults)
    page = context.new_page()
    if name == "anonymous":
        # These pages are only reachable in the course of a form.
        for link in inhabitants.mailed:
            page.goto(link)
            assert page.get_by_label("New password", exact=False).count() == 2, link
    for one, is_new in visitor.opened:
        found = _faults(page, name, one, is_new)
        faults += [f"{one.address}: {fault}" for fault in found]
    context.close()
    assert faults == [], "\n".join(faults)


def _listen(context: BrowserContext, faults: list[str]) -> None:
    def logged(line: ConsoleMessage) -> None:
        if line.type in ("error", "warning"):  # others are hints
            faults.append(f"{line.page and line.page.url}: {line.text}")

    def failed(request: Request) -> None:
        # Opening the next page cancels an icon that is still loading.
        if request.failure != "net::ERR_ABORTED":
            faults.append(f"{request.failure}: {request.url}")

    context.on("console", logged)
    context.on("weberror", lambda error: faults.append(str(error.error)))
    context.on("requestfailed", failed)


def _faults(page: Page, visitor: str, one: Found, is_new: bool) -> Iterator[str]:
    """Check a page in both widths; yield its faults.

    is_new: whether to check its elements, too, in both colour schemes.
    """
    is_admin = one.name.startswith("admin:")
    kind = one.address if one.name in DIFFERENT else one.name
    name = f"{visitor}-" + re.sub(r"\W+", "-", kind or "home")
    answer = page.goto(one.address)
    if answer is None or answer.status != 200:
        yield f"status {answer and answer.status}"
    if is_new and not is_admin:
        yield from page.evaluate(FAULTS_OF_DOCUMENT)
    size = page.viewport_size
    is_phone = size is not None and size["width"] == WIDTHS["phone"]
    # It begins in the width of the page before.
    for width_name in ("phone", "desk") if is_phone else ("desk", "phone"):
        width = WIDTHS[width_name]
        set_width(page, width)
        wide, cut_off = page.evaluate(MEASURE)
        if not is_admin and wide > width:
            yield f"is {wide} wide at {width}"
        take_pictures(page, f"{name}-{width_name}")
        if width_name == "phone":
            yield from (f"{table} is cut off" for table in cut_off)
            for scheme in SCHEMES if is_new else ():
                yield from violations(page, scheme, OURS if is_admin else ["html"])
