"""A third-party page with connect.js, for tests of the script.

If a test checks how the script handles single frames, it simulates the wallet's end of the
socket and the token endpoint. Otherwise, the service provides them.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from hashlib import sha256
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from playwright.sync_api import BrowserContext, Page, Route, WebSocketRoute

from tests.support.browser import until
from tests.support.sites import SiteHandler
from tests.support.wallet import BY_USER
from wallets.consents import get_consent
from wallets.models import Dapp
from wallets.proposals import Choice
from wallets.services.consent import approve_session
from wallets.services.pairing import redeem_page_code, start_page_pairing

if TYPE_CHECKING:
    from tests.wallets.pages.conftest import Person

SCOPES = {
    "eip155:1": {"accounts": ["eip155:1:0x01"], "methods": [], "notifications": []}
}
SESSION = {"sessionScopes": SCOPES, "sessionProperties": {}}
NO_SESSION = {"sessionScopes": {}, "sessionProperties": {}}

TOKEN = """() => {
    const name = Object.keys(localStorage).find((key) => !/:(session|chain)$/.test(key));
    return JSON.parse(localStorage.getItem(name)).token;
}"""
"""Returns the stored token of the page, undefined if there is none."""

STORE = """([key, token]) => {
    localStorage.setItem(key, JSON.stringify({ token, tokenSince: Date.now() }));
    dispatchEvent(new StorageEvent("storage", { key }));
}"""
"""Gives the page a token, as if another page of its origin had stored it."""

DAPP = """<!doctype html><title>Dapp</title><button onclick="connect()">Connect</button>
<script>
  const heard = [], heardByEthereum = [], announced = [], providers = [];
  addEventListener("caip294:wallet_announce", (event) => announced.push(event.detail));
  addEventListener("eip6963:announceProvider", (event) => providers.push(event.detail));
  addEventListener("message", ({ data }) => {
    if (data.target !== "metamask-inpage") return;
    const isEthereum = data.data.name === "metamask-provider";
    (isEthereum ? heardByEthereum : heard).push(data.data.data);
  });
  function ask(frame, name = "metamask-multichain-provider") {
    const data = { name, data: frame };
    postMessage({ target: "metamask-contentscript", data }, location.origin);
  }
  function connect() {
    const scope = { methods: [], notifications: [] };
    const params = { optionalScopes: { "eip155:1": scope, "eip155:137": scope } };
    ask({ jsonrpc: "2.0", id: 1, method: "wallet_createSession", params });
  }
</script>
<script src="WALLET/static/wallet/connect.js"></script>"""


class DappPages(SiteHandler):
    """A site with one page, which includes the wallet's script."""

    wallet = ""

    def do_GET(self) -> None:
        self.send_page(DAPP.replace("WALLET", self.wallet))


class Stage:
    """A browser with the dapp, and the wallet's ends of the script's connections."""

    def __init__(
        self, context: BrowserContext, person: Person, base_url: str, origin: str
    ) -> None:
        self.context = context
        self.base_url = base_url
        self.person = person
        self.origin = origin
        self.exchanges: list[Route] = []
        self.sockets: list[WebSocketRoute] = []
        self.frames: list[dict[str, Any]] = []
        self.is_played = True
        """Whether the test simulates the socket and the token endpoint, instead of the service."""
        context.route("**/wallet/token", self._exchanging)
        context.route_web_socket("**/ws/dapp", self._opened)
        self.page = self.open()

    @property
    def pages(self) -> list[Page]:
        """The open pages: the dapp's first one, and those that were opened since."""
        return self.context.pages[1:]  # see `kept_context`

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
        """Wait until a function returns a truthy value, and return it."""
        return until(self.page, what)

    def asked(self, method: str) -> dict[str, Any]:
        """Return the script's next frame with a method."""

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
        """Make the dapp send a request over the bridge."""
        frame = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        self.page.evaluate("frame => ask(frame)", frame)

    def heard(self, number: object) -> dict[str, Any]:
        """Return the response that the dapp has received."""

        def find() -> dict[str, Any] | None:
            frames = self.page.evaluate("heard")
            return next((frame for frame in frames if frame.get("id") == number), None)

        found: dict[str, Any] = self.until(find)
        return found

    def notified(self) -> list[dict[str, Any]]:
        return [frame for frame in self.page.evaluate("heard") if "id" not in frame]

    def window(self) -> Page:
        """Click the dapp's button, and return the window that it opens."""
        with self.context.expect_page() as opened:
            self.page.get_by_role("button", name="Connect").click()
        return opened.value

    def wallet(self, place: str) -> Page:
        """Return a page of the wallet that the user has opened themselves."""
        page = self.context.new_page()
        page.goto(f"{self.base_url}/wallet/{place}")
        return page

    def exchange(self) -> str:
        """Answer the script's exchange of a code with a token."""
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

    def pair(self) -> Dapp:
        """Pair the dapp as another page of the origin does, which stores the token."""
        user, verifier = self.person.user, "v" * 43
        hashed = urlsafe_b64encode(sha256(verifier.encode()).digest())
        challenge = hashed.rstrip(b"=").decode()
        code = start_page_pairing(user=user, origin=self.origin, challenge=challenge)
        issued = redeem_page_code(
            code=code, verifier=verifier, origin=self.origin, cause=BY_USER
        )
        self.page.evaluate(STORE, [f"portcullis:{self.base_url}", issued.secret])
        return issued.token.dapp

    def connect(self, address: str) -> None:
        """Pair the dapp with the service, and grant what it asks for with one account."""
        self.is_played = False
        user, dapp = self.person.user, self.pair()
        request = self.person.asked("eip155:1", dapp=dapp)
        found = get_consent(request)
        addresses = [one for one in found.own if one.address == address.lower()]
        choice = Choice(frozenset(found.asked), addresses=frozenset(addresses))
        approve_session(
            request_id=request.pk,
            user=user,
            digest=found.digest,
            choice=choice,
            cause=BY_USER,
        )

    def create_session(self) -> None:
        """Pair the dapp, and make it ask for a session; the request then waits."""
        self.pair()
        self.answer("wallet_getSession", NO_SESSION)
        self.page.evaluate("connect()")
