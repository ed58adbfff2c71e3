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
    width_of,
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


FAULTS_OF_DOCUMENT = """(isAdmin) => {
    const faults = [];
    const headings = document.querySelectorAll("h1").length;
    if (headings !== 1) faults.push(`${headings} main headings`);
    if (!document.documentElement.lang.startsWith("en")) faults.push("no language");
    if (!document.title.trim()) faults.push("no title");
    if (isAdmin) return faults;
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

CUT_OFF = """
    [...document.querySelectorAll(".table, #changelist .results")]
    .filter((one) => one.checkVisibility() && one.scrollWidth > one.clientWidth + 1)
    .map((one) => one.ariaLabel || one.querySelector("caption")?.textContent || one.className)
"""
"""Returns the names of tables that are wider than the page."""


@dataclass(frozen=True, slots=True)
class Visitor:
    """A visitor with a browser. session: the session cookie; "" if not logged in."""

    name: str
    session: str
    found: list[Found]


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
    for name, places in starts.items():
        user = users.get(name)
        session = logged_in(user).cookies["sessionid"].value if user else ""
        cookies = {"sessionid": session} if session else {}
        with httpx.Client(
            base_url=live.base_url, cookies=cookies, timeout=60
        ) as client:
            found = crawl(client, places, WITHIN.get(name, "/"))
            visitors[name] = Visitor(name, session, found)
    return visitors


def test_every_link_leads_somewhere(visitors: dict[str, Visitor]) -> None:
    for visitor in visitors.values():
        broken = [one for one in visitor.found if one.status != 200]
        assert broken == [], visitor.name


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
    for one in _one_of_each(visitor):
        faults += [f"{one.address}: {fault}" for fault in _faults(page, visitor, one)]
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


def _one_of_each(visitor: Visitor) -> Iterator[Found]:
    """Yield the first page of each view; for customers, only of views that only they see."""
    seen: set[str] = set()
    for one in visitor.found:
        is_own = visitor.name == "anonymous" or not one.name.startswith("docs:")
        kind = one.address if one.name in DIFFERENT else one.name
        # These pages of the admin have the same templates for all models.
        kind = re.sub(r"^admin:.*(_history|_delete)$", r"\1", kind)
        if one.is_page and is_own and kind not in seen:
            seen.add(kind)
            yield one


def _faults(page: Page, visitor: Visitor, one: Found) -> Iterator[str]:
    """Check a page in both widths and colour schemes; yield its faults."""
    is_admin = one.name.startswith("admin:")
    kind = one.address if one.name in DIFFERENT else one.name
    name = f"{visitor.name}-" + re.sub(r"\W+", "-", kind or "home")
    answer = page.goto(one.address)
    if answer is None or answer.status != 200:
        yield f"status {answer and answer.status}"
    else:
        yield from _faults_of_policy(answer.header_value(POLICY) or "")
    yield from page.evaluate(FAULTS_OF_DOCUMENT, is_admin)
    for width_name, width in WIDTHS.items():
        set_width(page, width)
        if not is_admin and (wide := width_of(page)) > width:
            yield f"is {wide} wide at {width}"
        take_pictures(page, f"{name}-{width_name}")
    yield from (f"{one} is cut off" for one in page.evaluate(CUT_OFF))
    parts = OURS if is_admin else ["html"]
    for scheme in SCHEMES if page.locator(",".join(parts)).count() else ():
        yield from violations(page, scheme, parts)


def _faults_of_policy(policy: str) -> Iterator[str]:
    """Yield the faults of a page's content policy. The console reports violations."""
    directives = [one.strip() for one in policy.split(";")]
    for needed in ("default-src 'none'", "base-uri 'none'", "frame-ancestors 'none'"):
        if needed not in directives:
            yield f"its policy has no {needed}"
    if "unsafe" in policy:
        yield "its policy lets inline code run"
