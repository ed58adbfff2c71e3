"""The pages in a real browser: scripts, styles and content policy."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from keys.models import User
from server.supervisor import Server
from tests.support.browser import log_in, needs_chromium, until
from tests.support.sites import SiteHandler, running_site
from tests.support.wallet import BY_USER
from tests.wallets.pages.conftest import Person
from wallets.changes import announce_user
from wallets.models import Dapp, RequestState, Session
from wallets.services.requests import reject_request

pytestmark = needs_chromium


def page_of(context: BrowserContext, faults: list[str]) -> Page:
    page = context.new_page()
    page.on("console", lambda line: faults.append(line.text))
    page.on("pageerror", lambda error: faults.append(str(error)))
    return page


def test_request_appears_in_the_open_inbox_and_is_approved(context, inhabited: Person):
    faults: list[str] = []
    page = page_of(context, faults)
    page.goto("/wallet/")
    expect(page.get_by_text("No pending requests")).to_be_visible()
    request = inhabited.asked("eip155:1", "eip155:137")
    page.get_by_role("link", name="Review").click()  # waits until the element exists
    page.get_by_role("checkbox", name="Polygon").uncheck()
    page.get_by_role("button", name="Approve").click()
    expect(page.get_by_role("status")).to_contain_text(
        "now has the permissions that you selected"
    )
    assert list(Session.objects.get(dapp=inhabited.dapp).scopes) == ["eip155:1"]
    request.refresh_from_db()
    assert request.state == RequestState.APPROVED
    assert faults == []


def test_inbox_shows_what_comes_and_goes_as_it_is_reported(context, inhabited: Person):
    faults: list[str] = []
    page = page_of(context, faults)
    page.clock.install()
    looks: list[str] = []
    page.on("request", lambda one: looks.append(one.resource_type))
    words: list[str | bytes] = []
    page.on(
        "websocket",
        lambda one: one.on("framereceived", lambda word: words.append(word)),
    )
    page.goto("/wallet/")
    until(page, lambda: words)
    link = page.get_by_role("link", name="Review")
    for _ in range(3):
        request = inhabited.asked()
        expect(link).to_be_visible()
        expect(page).to_have_title("(1) Requests · Portcullis")
        reject_request(request_id=request.pk, user=inhabited.user, cause=BY_USER)
        expect(link).to_be_hidden()
        Dapp.objects.update(muted_until=None)
    looks.clear()
    page.clock.fast_forward(10_000)
    page.wait_for_timeout(100)
    assert looks == []  # the page does not request it again
    assert faults == []


def test_inbox_finds_its_socket_again(context, inhabited: Person, service: Server):
    page = page_of(context, [])
    with page.expect_websocket():
        page.goto("/wallet/")
    User.objects.filter(pk=inhabited.user.pk).update(is_active=False)
    # A new socket, because the first one is rejected or closed.
    with page.expect_websocket():
        pass
    warning = page.get_by_text("This list is not up to date")
    expect(warning).to_be_visible()
    User.objects.filter(pk=inhabited.user.pk).update(is_active=True)
    expect(warning).to_be_hidden()
    inhabited.asked()
    expect(page.get_by_role("link", name="Review")).to_be_visible()


def test_list_that_is_up_to_date_keeps_the_focus(context, inhabited: Person):
    inhabited.asked()
    page = page_of(context, [])
    page.goto("/wallet/")
    link = page.get_by_role("link", name="Review")
    link.focus()
    with page.expect_response("**/wallet/"):
        announce_user(inhabited.user.pk)
    page.wait_for_timeout(100)
    expect(link).to_be_focused()


def test_inbox_says_when_it_is_out_of_date(context, inhabited: Person):
    page = page_of(context, [])
    page.goto("/wallet/")
    warning = page.get_by_text("This list is not up to date")
    expect(warning).to_be_hidden()
    inhabited.client.logout()
    expect(warning).to_be_visible()


def test_click_that_comes_too_soon_approves_nothing(
    browser: Browser, service: Server, inhabited: Person
):
    context = browser.new_context(base_url=service.base_url)
    log_in(context, service.base_url, inhabited.client.cookies["sessionid"].value)
    page = context.new_page()
    # The clock of its animations stands still.
    context.new_cdp_session(page).send("Animation.setPlaybackRate", {"playbackRate": 0})
    page.goto(f"/wallet/requests/{inhabited.asked().pk}")
    button = page.get_by_role("button", name="Approve")
    button.wait_for()
    assert button.evaluate("one => getComputedStyle(one).pointerEvents") == "none"
    timing = "one => one.getAnimations()[0].effect.getComputedTiming().endTime"
    assert button.evaluate(timing) == 1000  # milliseconds
    button.evaluate("one => one.getAnimations()[0].currentTime = 999")
    assert button.evaluate("one => getComputedStyle(one).pointerEvents") == "none"
    button.evaluate("one => one.getAnimations()[0].currentTime = 1000")
    assert button.evaluate("one => getComputedStyle(one).pointerEvents") == "auto"
    context.close()


def test_return_key_says_no(context, inhabited: Person):
    request = inhabited.asked()
    page = page_of(context, [])
    page.goto(f"/wallet/requests/{request.pk}")
    page.get_by_role("checkbox", name="Main").press("Enter")
    expect(page.get_by_role("status")).to_contain_text("Rejected the request.")
    request.refresh_from_db()
    assert request.state == RequestState.REJECTED


class Framing(SiteHandler):
    """A third-party page with the wallet in a frame."""

    framed = ""

    def do_GET(self) -> None:
        self.send_page(f'<title>Game</title><iframe src="{self.framed}"></iframe>')


@pytest.mark.case(132)
def test_consent_page_is_shown_in_no_frame(context, service, inhabited: Person):
    """This includes a frame in a page on the same host, which has the cookie."""
    handler = type(
        "Handler",
        (Framing,),
        {"framed": f"{service.base_url}/wallet/requests/{inhabited.asked().pk}"},
    )
    with running_site(handler) as port:
        faults: list[str] = []
        page = page_of(context, faults)
        page.goto(f"http://127.0.0.1:{port}/")
        expect(page).to_have_title("Game")
        until(page, lambda: any("frame-ancestors" in fault for fault in faults))
        expect(page.frame_locator("iframe").get_by_text("Approve")).to_have_count(0)
