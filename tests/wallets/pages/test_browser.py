"""The pages in a real browser: what scripts, style and policy do together."""

from __future__ import annotations

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from config.server import Server
from tests.support.browser import log_in, needs_chromium, running_chromium
from tests.support.wallet import served_chains
from tests.wallets.pages.conftest import Person
from wallets.models import RequestState, Session

pytestmark = needs_chromium


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with running_chromium() as running:
        yield running


@pytest.fixture
def inhabited(service: Server) -> Person:
    """Return a user of the service."""
    served_chains()
    return Person()


@pytest.fixture
def context(
    browser: Browser, service: Server, inhabited: Person
) -> Iterator[BrowserContext]:
    """Return a browser in which the user has logged in; it may report no fault."""
    context = browser.new_context(base_url=service.base_url)
    log_in(context, service.base_url, inhabited.client.cookies["sessionid"].value)
    yield context
    context.close()


def page_of(context: BrowserContext, faults: list[str]) -> Page:
    page = context.new_page()
    page.on("console", lambda line: faults.append(line.text))
    page.on("pageerror", lambda error: faults.append(str(error)))
    return page


def test_request_appears_in_the_open_inbox_and_is_approved(context, inhabited: Person):
    faults: list[str] = []
    page = page_of(context, faults)
    page.goto("/wallet/")
    expect(page.get_by_text("Nobody is waiting for you")).to_be_visible()
    request = inhabited.asked("eip155:1", "eip155:137")
    page.get_by_role("link", name="Look at it").click()  # waits until it is there
    page.get_by_role("checkbox", name="Polygon").uncheck()
    page.get_by_role("button", name="Approve").click()
    expect(page.get_by_role("status")).to_contain_text("may now do what you have left")
    assert list(Session.objects.get(dapp=inhabited.dapp).scopes) == ["eip155:1"]
    request.refresh_from_db()
    assert request.state == RequestState.APPROVED
    assert faults == []


def test_list_that_is_up_to_date_keeps_the_focus(context, inhabited: Person):
    inhabited.asked()
    page = page_of(context, [])
    page.goto("/wallet/")
    link = page.get_by_role("link", name="Look at it")
    link.focus()
    with page.expect_response("**/wallet/"):
        pass
    page.wait_for_timeout(100)
    expect(link).to_be_focused()


def test_inbox_says_when_it_is_out_of_date(context):
    page = page_of(context, [])
    page.goto("/wallet/")
    warning = page.get_by_text("This list is not up to date")
    expect(warning).to_be_hidden()
    context.clear_cookies()
    expect(warning).to_be_visible()


def test_click_that_comes_too_soon_approves_nothing(context, inhabited: Person):
    page = page_of(context, [])
    page.goto(f"/wallet/requests/{inhabited.asked().pk}", wait_until="commit")
    button = page.get_by_role("button", name="Approve")
    button.wait_for()
    assert button.evaluate("one => getComputedStyle(one).pointerEvents") == "none"
    page.wait_for_timeout(1200)
    assert button.evaluate("one => getComputedStyle(one).pointerEvents") == "auto"


def test_return_key_says_no(context, inhabited: Person):
    request = inhabited.asked()
    page = page_of(context, [])
    page.goto(f"/wallet/requests/{request.pk}")
    page.get_by_role("checkbox", name="Main").press("Enter")
    expect(page.get_by_role("status")).to_contain_text("was told no")
    request.refresh_from_db()
    assert request.state == RequestState.REJECTED


@pytest.mark.parametrize("scripts", [True, False])
@pytest.mark.parametrize("path", ["", "accounts", "connections", "activity", "request"])
def test_pages_fit_on_a_phone(
    browser, service: Server, inhabited: Person, path, scripts
):
    request = inhabited.asked()
    faults: list[str] = []
    phone = browser.new_context(
        base_url=service.base_url,
        viewport={"width": 390, "height": 800},
        java_script_enabled=scripts,
    )
    log_in(phone, service.base_url, inhabited.client.cookies["sessionid"].value)
    page = page_of(phone, faults)
    page.goto(
        f"/wallet/requests/{request.pk}" if path == "request" else f"/wallet/{path}"
    )
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert faults == []
    phone.close()


class Framing(BaseHTTPRequestHandler):
    """A page of somebody else with the wallet in a frame."""

    framed = ""

    def do_GET(self) -> None:
        body = f'<title>Game</title><iframe src="{self.framed}"></iframe>'.encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def test_consent_page_is_shown_in_no_frame(context, service, inhabited: Person):
    """Case 132: not even to a page on the same host, which gets the cookie along."""
    handler = type(
        "Handler",
        (Framing,),
        {"framed": f"{service.base_url}/wallet/requests/{inhabited.asked().pk}"},
    )
    with HTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        faults: list[str] = []
        page = page_of(context, faults)
        page.goto(f"http://127.0.0.1:{server.server_port}/")
        expect(page).to_have_title("Game")
        page.wait_for_timeout(500)
        assert "Approve" not in "".join(frame.content() for frame in page.frames)
        assert any("frame-ancestors" in fault for fault in faults)
        server.shutdown()
