"""connect.js on a page of somebody else, in a real browser, against the real pages.

The wallet's end of the socket, and the address where a code becomes a token, are played
here where a test is about what the script makes of each frame. The first test has the
service's own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs

import pytest
from django.utils import timezone
from playwright.sync_api import Browser, BrowserContext, Page, Route, WebSocketRoute

from config.server import Server
from tests.support.browser import log_in, needs_chromium, until
from tests.support.signing import PASSPHRASE, add_key, signer_of
from tests.support.wallet import BY_USER
from tests.wallets.pages.conftest import Person
from wallets.models import ConsentRequest, Dapp, DappToken, LiveSocket
from wallets.services.dapps import disconnect_all
from wallets.services.pairing import redeem_page_code
from wallets.services.tokens import RENEWED_AFTER

pytestmark = needs_chromium

SCOPES = {
    "eip155:1": {"accounts": ["eip155:1:0x01"], "methods": [], "notifications": []}
}
SESSION = {"sessionScopes": SCOPES, "sessionProperties": {}}
NO_SESSION = {"sessionScopes": {}, "sessionProperties": {}}
MAKE_OLD = """() => {
    const [name] = Object.keys(localStorage);
    const kept = JSON.parse(localStorage.getItem(name));
    localStorage.setItem(name, JSON.stringify({ ...kept, tokenSince: 0 }));
}"""
"""Has the page take its token for an old one; other pages of the origin, too."""

PROVIDER = "metamask-multichain-provider"

DAPP = """<!doctype html><title>Dapp</title><button onclick="connect()">Connect</button>
<script>
  const heard = [], announced = [];
  addEventListener("caip294:wallet_announce", (event) => announced.push(event.detail));
  addEventListener("message", ({ data }) => {
    if (data.target === "metamask-inpage") heard.push(data.data.data);
  });
  function ask(frame) {
    const data = { name: "metamask-multichain-provider", data: frame };
    postMessage({ target: "metamask-contentscript", data }, location.origin);
  }
  function connect() {
    const scope = { methods: [], notifications: [] };
    const params = { optionalScopes: { "eip155:1": scope, "eip155:137": scope } };
    ask({ jsonrpc: "2.0", id: 1, method: "wallet_createSession", params });
  }
</script>
<script src="WALLET/static/wallet/connect.js"></script>"""


class DappPages(BaseHTTPRequestHandler):
    """A site with one page, which includes the wallet's script."""

    wallet = ""

    def do_GET(self) -> None:
        body = DAPP.replace("WALLET", self.wallet).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


class Stage:
    """A browser with the dapp in it, and the wallet's end of what the script opens."""

    def __init__(self, context: BrowserContext, person: Person, origin: str) -> None:
        self.context = context
        self.person = person
        self.origin = origin
        self.exchanges: list[Route] = []
        self.sockets: list[WebSocketRoute] = []
        self.frames: list[dict[str, Any]] = []
        self.is_played = True
        """Whether sockets and codes end here; if not, the service has them."""
        context.route("**/wallet/token", self._exchanging)
        context.route_web_socket("**/ws/dapp", self._opened)
        self.page = self.open()

    def open(self) -> Page:
        page = self.context.new_page()
        page.goto(self.origin)
        return page

    def _exchanging(self, route: Route) -> None:
        if self.is_played:
            self.exchanges.append(route)
        else:
            route.continue_()

    def _opened(self, socket: WebSocketRoute) -> None:
        if not self.is_played:
            socket.connect_to_server()
            return
        self.sockets.append(socket)
        socket.on_message(lambda frame: self.frames.append(json.loads(frame)))

    def until(self, what: Any) -> Any:
        """Return what a function returns, once that is something."""
        return until(self.page, what)

    def asked(self, method: str) -> dict[str, Any]:
        """Return the next frame of a method that the script sends."""

        def find() -> dict[str, Any] | None:
            for frame in self.frames:
                if frame["method"] == method:
                    self.frames.remove(frame)
                    return frame
            return None

        found: dict[str, Any] = self.until(find)
        return found

    def say(self, **frame: Any) -> None:
        """Send a frame to the script."""
        self.sockets[-1].send(json.dumps({"jsonrpc": "2.0", **frame}))

    def answer(self, method: str, result: Any) -> dict[str, Any]:
        frame = self.asked(method)
        self.say(id=frame["id"], result=result)
        return frame

    def ask(self, number: object, method: str, params: object = None) -> None:
        """Have the dapp ask over the bridge."""
        frame = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        self.page.evaluate("frame => ask(frame)", frame)

    def heard(self, number: object) -> dict[str, Any]:
        """Return the answer that the dapp has heard."""

        def find() -> dict[str, Any] | None:
            frames = self.page.evaluate("heard")
            return next((frame for frame in frames if frame.get("id") == number), None)

        found: dict[str, Any] = self.until(find)
        return found

    def notified(self) -> list[dict[str, Any]]:
        return [frame for frame in self.page.evaluate("heard") if "id" not in frame]

    def window(self) -> Page:
        """Have the dapp's button clicked, and return the window that it opens."""
        with self.context.expect_page() as opened:
            self.page.get_by_role("button", name="Connect").click()
        return opened.value

    def exchange(self) -> str:
        """Give the script the token for its code, as the address for that has to."""
        route = self.until(lambda: self.exchanges and self.exchanges.pop())
        given = parse_qs(route.request.post_data or "")
        origin = route.request.header_value("origin")
        issued = redeem_page_code(
            code=given["code"][0],
            verifier=given["code_verifier"][0],
            origin=origin,
            cause=BY_USER,
        )
        route.fulfill(
            json={"token": issued.secret},
            headers={"Access-Control-Allow-Origin": origin or ""},
        )
        return issued.secret

    def pair(self) -> str:
        """Pair the dapp on the wallet's page; a wallet_createSession then waits."""
        window = self.window()
        window.get_by_role("button", name="Let it ask").click()
        token = self.exchange()
        self.answer("wallet_getSession", NO_SESSION)
        return token


@pytest.fixture
def stage(browser: Browser, service: Server) -> Iterator[Stage]:
    person = Person()
    pages = type("Pages", (DappPages,), {"wallet": service.base_url})
    with HTTPServer(("127.0.0.1", 0), pages) as site:
        Thread(target=site.serve_forever, daemon=True).start()
        context = browser.new_context()
        log_in(context, service.base_url, person.client.cookies["sessionid"].value)
        yield Stage(context, person, f"http://localhost:{site.server_port}")
        context.close()
        site.shutdown()


def test_dapp_is_let_in_reads_the_chain_and_hears_of_changes(stage: Stage):
    """All of it: paired, consented to, called, edited, revoked, with every click."""
    stage.is_played = False
    window = stage.window()
    window.get_by_role("button", name="Let it ask").click()
    window.get_by_role("checkbox", name="Polygon").uncheck()  # it was led there
    window.get_by_role("button", name="Approve").click()
    assert list(stage.heard(1)["result"]["sessionScopes"]) == ["eip155:1"]
    call = {"scope": "eip155:1", "request": {"method": "eth_chainId"}}
    stage.ask(2, "wallet_invokeMethod", call)
    assert stage.heard(2)["result"] == "0x1"
    window.get_by_role("link", name="Connections").click()
    window.get_by_role("listitem").filter(has_text="localhost").get_by_text(
        "Edit"
    ).click()
    window.get_by_role("checkbox", name="Dev").check()
    window.get_by_role("button", name="Save").click()
    stage.until(stage.notified)
    changed = stage.notified()[0]
    assert changed["method"] == "wallet_sessionChanged"
    assert list(changed["params"]["sessionScopes"]) == ["eip155:1", "eip155:1337"]
    stage.ask(3, "wallet_revokeSession")
    assert stage.heard(3)["result"] is True
    stage.ask(4, "wallet_getSession")
    assert stage.heard(4)["result"] == NO_SESSION
    stage.ask(5, "wallet_invokeMethod", call)
    assert stage.heard(5)["error"]["code"] == 4100


def test_user_is_led_to_what_he_is_to_sign(stage: Stage):
    """To the request itself; a call that is refused at once opens no window."""
    account = add_key(stage.person.user)
    stage.is_played = False
    window = stage.window()
    window.get_by_role("button", name="Let it ask").click()
    window.get_by_role("checkbox", name=account.address).check()
    window.get_by_role("button", name="Approve").click()
    assert (
        "personal_sign"
        in stage.heard(1)["result"]["sessionScopes"]["eip155:1"]["methods"]
    )

    def sign(number: int, message: str) -> None:
        request = {"method": "personal_sign", "params": [message, account.address]}
        call = {"scope": "eip155:1", "request": request}
        stage.ask(number, "wallet_invokeMethod", call)

    with stage.context.expect_page() as opened:
        sign(2, "0x" + b"Hello".hex())
    led = opened.value
    led.get_by_text("asks you to sign a message").wait_for()
    led.get_by_label("Passphrase").fill(PASSPHRASE)
    led.get_by_role("button", name="Sign", exact=True).click()
    assert signer_of(b"Hello", stage.heard(2)["result"]) == account.address
    windows = len(stage.context.pages)
    sign(3, "0x1")
    assert stage.heard(3)["error"]["code"] == -32602
    stage.page.wait_for_timeout(500)
    assert len(stage.context.pages) == windows


def test_second_request_opens_a_window_that_waits_for_it(stage: Stage):
    stage.is_played = False
    window = stage.window()
    window.get_by_role("button", name="Let it ask").click()
    window.get_by_role("button", name="Deny", exact=True).click()
    assert stage.heard(1)["error"]["code"] == 4001
    again = stage.window()
    again.get_by_role("button", name="Approve").click()
    stage.until(lambda: any("result" in one for one in stage.page.evaluate("heard")))


def test_wallet_is_announced_at_once_and_whenever_somebody_asks(stage: Stage):
    stage.page.evaluate("dispatchEvent(new Event('caip294:wallet_prompt'))")
    first, second = stage.page.evaluate("announced")
    assert first == second
    assert first["method"] == "wallet_announce"
    params = first["params"]
    assert (params["name"], params["icon"][:11]) == ("Portcullis", "data:image/")
    assert {"type": "caip-348", "value": "window.postMessage"} in params["targets"]
    assert len(params["uuid"]) == 36


def test_without_a_token_nobody_is_asked(stage: Stage):
    stage.ask(7, "wallet_getSession")
    assert stage.heard(7) == {"jsonrpc": "2.0", "id": 7, "result": NO_SESSION}
    stage.ask("a", "wallet_revokeSession")
    assert stage.heard("a")["result"] is True
    stage.ask(8, "wallet_invokeMethod", {})
    assert stage.heard(8)["error"]["code"] == 4100
    stage.ask(9, "eth_chainId")
    assert stage.heard(9)["error"]["code"] == -32601
    assert stage.sockets == []


def test_first_session_pairs_the_page_on_the_wallets_own_page(stage: Stage):
    window = stage.window()
    window.get_by_text(str(stage.person.user)).first.wait_for()
    assert "localhost" in window.locator("h1").inner_text()
    window.get_by_role("button", name="Let it ask").click()
    stage.exchange()
    window.wait_for_url(re.compile(r"/wallet/\?of="))  # which leads to the request
    stage.answer("wallet_getSession", NO_SESSION)
    frame = stage.answer("wallet_createSession", SESSION)
    assert list(frame["params"]["optionalScopes"]) == ["eip155:1", "eip155:137"]
    assert stage.heard(1)["result"] == SESSION
    dapp = Dapp.objects.get(user=stage.person.user, ident=stage.origin)
    assert dapp.tokens.count() == 1


def test_page_that_is_denied_hears_that_the_user_said_no(stage: Stage):
    window = stage.window()
    window.get_by_role("button", name="Deny").click()
    assert stage.heard(1)["error"] == {
        "code": 4001,
        "message": "User rejected the request.",
    }
    stage.until(window.is_closed)
    assert stage.exchanges == []
    dapps = Dapp.objects.filter(user=stage.person.user, ident=stage.origin)
    assert not dapps.exists()


def test_window_that_is_closed_is_a_no(stage: Stage):
    stage.window().close()
    assert stage.heard(1)["error"]["code"] == 4001


def test_code_from_elsewhere_is_not_taken(stage: Stage):
    window = stage.window()
    window.get_by_role("button", name="Let it ask").wait_for()
    forged = {"type": "portcullis:answer", "code": "stolen", "state": "x"}
    stage.page.evaluate("message => postMessage(message, '*')", forged)
    window.evaluate("message => opener.postMessage(message, '*')", forged)
    stage.page.wait_for_timeout(300)
    assert stage.exchanges == []


def test_session_is_told_at_once_and_kept_true_by_events(stage: Stage):
    stage.pair()
    stage.answer("wallet_createSession", SESSION)
    stage.heard(1)
    stage.ask(2, "wallet_getSession", [])
    assert stage.heard(2)["result"] == SESSION
    assert not [f for f in stage.frames if f["method"] == "wallet_getSession"]
    changed = {"eip155:137": SCOPES["eip155:1"]}
    stage.say(method="wallet_sessionChanged", params={"sessionScopes": changed})
    stage.until(stage.notified)
    assert [n["params"] for n in stage.notified()] == [{"sessionScopes": changed}]
    stage.ask(3, "wallet_getSession", [])
    assert stage.heard(3)["result"]["sessionScopes"] == changed


def test_consent_that_came_late_is_told_as_an_event_too(stage: Stage):
    """Dapps that were written for MetaMask give up an answer after 30 s."""
    stage.pair()
    stage.page.evaluate("const now = Date.now; Date.now = () => now() + 31_000")
    stage.answer("wallet_createSession", SESSION)
    assert stage.heard(1)["result"] == SESSION
    assert [n["params"] for n in stage.notified()] == [{"sessionScopes": SCOPES}]


def test_calls_of_several_askers_find_back_to_each(stage: Stage):
    stage.pair()
    stage.answer("wallet_createSession", SESSION)
    stage.heard(1)
    call = {"scope": "eip155:1", "request": {"method": "eth_chainId", "params": []}}
    stage.ask("same", "wallet_invokeMethod", call)
    stage.page.evaluate(
        """call => { window.own = portcullis.transport().request(
            { method: "wallet_invokeMethod", params: call }) }""",
        call,
    )
    one, two = stage.asked("wallet_invokeMethod"), stage.asked("wallet_invokeMethod")
    assert one["id"] != two["id"]
    assert one["params"] == two["params"] == call
    stage.say(id=two["id"], result="second")
    stage.say(id=one["id"], error={"code": 4100, "message": "no"})
    assert stage.heard("same")["error"] == {"code": 4100, "message": "no"}
    assert stage.page.evaluate("own")["result"] == "second"


def test_lost_socket_is_opened_again_and_what_was_missed_is_told(stage: Stage):
    stage.pair()
    stage.answer("wallet_createSession", SESSION)
    stage.heard(1)
    stage.sockets[-1].close(code=1012)
    stage.until(lambda: len(stage.sockets) == 2)
    stage.answer("wallet_getSession", NO_SESSION)
    stage.until(stage.notified)
    assert [n["method"] for n in stage.notified()] == ["wallet_sessionChanged"]
    assert stage.notified()[0]["params"] == {"sessionScopes": {}}


def test_page_that_is_loaded_again_is_paired_still(stage: Stage):
    stage.pair()
    stage.answer("wallet_createSession", SESSION)
    stage.heard(1)
    stage.page.reload()
    stage.until(lambda: len(stage.sockets) == 2)
    stage.ask(5, "wallet_getSession")
    assert stage.heard(5)["result"] == SESSION


def test_token_that_was_revoked_is_forgotten(stage: Stage):
    stage.pair()
    stage.answer("wallet_createSession", SESSION)
    stage.heard(1)
    stage.sockets[-1].close(code=4401)
    stage.until(stage.notified)
    stage.ask(6, "wallet_getSession")
    assert stage.heard(6)["result"] == NO_SESSION
    stage.page.wait_for_timeout(800)
    assert len(stage.sockets) == 1


def test_token_that_was_revoked_while_nobody_looked_opens_nothing(stage: Stage):
    stage.pair()
    stage.answer("wallet_createSession", SESSION)
    stage.heard(1)
    stage.page.goto("about:blank")
    disconnect_all(user=stage.person.user, cause=BY_USER)
    stage.is_played = False
    stage.page.goto(stage.origin)
    stage.until(stage.notified)
    assert stage.notified()[0]["params"] == {"sessionScopes": {}}
    stage.ask(2, "wallet_getSession")
    assert stage.heard(2)["result"] == NO_SESSION


def test_old_token_is_renewed_by_one_page_and_used_by_all(stage: Stage):
    """Ten pages come back at once after two days, over the service's own addresses."""
    stage.is_played = False
    window = stage.window()
    window.get_by_role("button", name="Let it ask").click()
    of_user = {"dapp__user": stage.person.user}
    stage.until(ConsentRequest.objects.pending().filter(**of_user).exists)
    tokens = DappToken.objects.filter(**of_user)
    tokens.update(renewed_at=timezone.now() - RENEWED_AFTER)
    old = tokens.get().digest
    renewals: list[str] = []
    stage.context.on(
        "request", lambda one: renewals.append(one.url) if "token" in one.url else None
    )
    pages = [stage.page, *(stage.open() for _ in range(9))]
    for page in pages:
        page.evaluate(MAKE_OLD)
    for page in pages:
        page.reload(wait_until="commit")
    sockets = LiveSocket.objects.filter(**of_user)
    stage.until(lambda: sockets.count() == len(pages))
    token = tokens.get()
    assert token.digest != old
    assert token.former_digest == ""  # the fresh one was shown
    assert len(renewals) == 1


def test_outage_is_waited_out_with_token_and_session(stage: Stage):
    stage.pair()
    stage.answer("wallet_createSession", SESSION)
    stage.heard(1)
    stage.page.evaluate(MAKE_OLD)
    stage.context.route("**/wallet/token", lambda route: route.abort())
    stage.sockets[-1].close(code=1012)
    stage.until(lambda: len(stage.sockets) == 2)  # with the token that it has
    stage.answer("wallet_getSession", SESSION)
    stage.ask(5, "wallet_getSession")
    assert stage.heard(5)["result"] == SESSION
    assert stage.notified() == []


def test_transport_times_out_as_clients_expect(stage: Stage):
    stage.pair()
    stage.answer("wallet_createSession", SESSION)
    stage.heard(1)
    name = stage.page.evaluate(
        """() => portcullis.transport().request(
            { method: "wallet_invokeMethod", params: {} }, { timeout: 50 }
        ).catch((error) => error.name)"""
    )
    assert name == "TransportTimeoutError"
