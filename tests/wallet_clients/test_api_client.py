"""@metamask/multichain-api-client in Node.js, as a program of the user over a WebSocket."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from http import HTTPStatus
from queue import Queue
from threading import Thread
from typing import Any

import pytest

from tests.support.live import Live
from tests.support.waiting import wait_until
from tests.support.wallet import A1, BY_USER, M0
from tests.wallet_clients.conftest import FOLDER, Mainnet
from tests.wallets.pages.conftest import Person
from wallets.models import ConsentRequest, Dapp, DappKind, Session
from wallets.services.pairing import redeem_program_code, start_program_pairing

SECONDS = 20
"""Longest wait for a line of the client's."""

SCOPES = {"optionalScopes": {"eip155:1": M0, "eip155:137": M0}}
NO_SESSION = {"sessionScopes": {}, "sessionProperties": {}}
UNAUTHORIZED = {
    "name": "MultichainApiError",
    "code": 4100,
    "message": "The requested account and/or method has not been authorized by the user.",
}


class Peer:
    """The client in a separate process; see peer.mjs."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._answers: Queue[dict[str, Any]] = Queue()
        self._notifications: Queue[dict[str, Any]] = Queue()
        Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            said = json.loads(line)
            if "notification" in said:
                self._notifications.put(said["notification"])
            else:
                self._answers.put(said)

    def begin(self, call: str, argument: Any = None) -> None:
        """Begin a call of a method of the client."""
        assert self._process.stdin
        order = {"call": call, "argument": argument}
        known = {name: value for name, value in order.items() if value is not None}
        print(json.dumps(known), file=self._process.stdin, flush=True)

    def answer(self) -> dict[str, Any]:
        """Return the result or the error of the last call."""
        return self._answers.get(timeout=SECONDS)

    def call(self, call: str, argument: Any = None) -> Any:
        """Return the result of a method of the client."""
        self.begin(call, argument)
        answer = self.answer()
        assert "error" not in answer, answer
        return answer["result"]

    def error(self, call: str, argument: Any = None) -> Any:
        """Return the error that a method of the client throws."""
        self.begin(call, argument)
        answer = self.answer()
        assert "result" not in answer, answer
        return answer["error"]

    def invoke(self, method: str, *params: Any) -> Any:
        """Return the result of a method of mainnet."""
        request = {"method": method, "params": list(params)}
        return self.call("invokeMethod", {"scope": "eip155:1", "request": request})

    def notified(self) -> dict[str, Any]:
        """Return the wallet's notifications, the oldest first."""
        return self._notifications.get(timeout=SECONDS)


@pytest.fixture
def token(person: Person) -> str:
    code = start_program_pairing(user=person.user, label="bot")
    return redeem_program_code(code=code, cause=BY_USER).secret


@pytest.fixture
def peer(live: Live, token: str) -> Iterator[Peer]:
    url = live.base_url.replace("http", "ws", 1) + "/ws/dapp"
    with subprocess.Popen(
        ["node", "--experimental-websocket", "peer.mjs", url],
        cwd=FOLDER,
        env={**os.environ, "WALLET_TOKEN": token, "NODE_NO_WARNINGS": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield Peer(process)
        assert process.stdin
        process.stdin.close()
        assert process.wait(SECONDS) == 0


def pending(person: Person) -> ConsentRequest:
    """Return the pending request of the user's program, once it exists."""
    waiting = ConsentRequest.objects.pending().filter(dapp__user=person.user)
    wait_until(waiting.exists)
    return waiting.get()


def boxes(page: str) -> dict[str, list[str]]:
    """Return the form data that a browser sends for an unchanged page."""
    found: dict[str, list[str]] = {}
    ticked = r'name="(scope|account|group)" value="([^"]+)" checked'
    hidden = r'name="(digest|version)" value="(\w+)"'
    for name, value in re.findall(ticked, page) + re.findall(hidden, page):
        found.setdefault(name, []).append(value)
    return found


def decide(person: Person, decision: str) -> None:
    """Decide a request on its page, with the preselected checkboxes."""
    address = f"/wallet/requests/{pending(person).pk}"
    left = boxes(person.client.get(address).content.decode())
    posted = person.client.post(address, {**left, "decision": decision})
    assert posted.status_code == HTTPStatus.FOUND


def create(peer: Peer, person: Person) -> Any:
    """Create a session, approve it as the user, and return it."""
    peer.begin("createSession", SCOPES)
    decide(person, "approve")
    answer = peer.answer()
    assert "result" in answer, answer
    return answer["result"]


def edit(person: Person, *scopes: str) -> None:
    """Select only some networks on the connection's page."""
    dapp = Dapp.objects.get(user=person.user, kind=DappKind.APP)
    address = f"/wallet/connections/{dapp.pk}"
    page = person.client.get(address).content.decode()
    left = {**boxes(page), "scope": list(scopes)}
    assert person.client.post(address, left).status_code == HTTPStatus.FOUND


def test_session_is_made_looked_at_and_revoked(peer: Peer, person: Person):
    assert peer.call("getSession") == NO_SESSION
    created = create(peer, person)
    assert set(created["sessionScopes"]) == {"eip155:1", "eip155:137"}
    mainnet = created["sessionScopes"]["eip155:1"]
    assert "eth_chainId" in mainnet["methods"]
    assert mainnet["accounts"] == [f"eip155:1:{A1}"]
    assert peer.call("getSession") == created
    assert peer.call("revokeSession", {"scopes": ["eip155:137"]}) is None
    # The client has closed its socket, and opens another one.
    left = peer.call("getSession")
    assert left["sessionScopes"] == {"eip155:1": mainnet}
    peer.call("revokeSession", {})
    assert peer.call("getSession") == NO_SESSION
    assert not Session.objects.get(
        dapp__user=person.user, dapp__kind=DappKind.APP
    ).scopes


def test_chain_is_read_and_its_blocks_arrive(
    peer: Peer, person: Person, mainnet: Mainnet
):
    create(peer, person)
    assert peer.invoke("eth_chainId") == "0x1"
    subscription = peer.invoke("eth_subscribe", "newHeads")
    numbers = [mainnet.grow(), mainnet.grow()]
    for number in numbers:
        notified = peer.notified()
        assert notified["method"] == "wallet_notify"
        assert notified["params"]["scope"] == "eip155:1"
        event = notified["params"]["notification"]
        assert event["method"] == "eth_subscription"
        assert event["params"]["subscription"] == subscription
        assert event["params"]["result"]["number"] == hex(number)
    assert peer.invoke("eth_blockNumber") == hex(numbers[-1])
    assert peer.invoke("eth_unsubscribe", subscription) is True


def test_change_by_the_user_is_reported(peer: Peer, person: Person):
    created = create(peer, person)
    edit(person, "eip155:137")
    changed = peer.notified()
    assert changed["method"] == "wallet_sessionChanged"
    scopes = {"eip155:137": created["sessionScopes"]["eip155:137"]}
    assert changed["params"] == {"sessionScopes": scopes}
    call = {"scope": "eip155:1", "request": {"method": "eth_chainId", "params": []}}
    assert peer.error("invokeMethod", call) == UNAUTHORIZED


def test_errors_keep_their_codes(peer: Peer, person: Person):
    call = {"scope": "eip155:1", "request": {"method": "eth_chainId", "params": []}}
    assert peer.error("invokeMethod", call) == UNAUTHORIZED
    peer.begin("createSession", SCOPES)
    decide(person, "reject")
    error = peer.answer()["error"]
    assert (error["name"], error["code"]) == ("MultichainApiError", 4001)
    unknown = {"optionalScopes": {"eip155:1": {**M0, "methods": "eth_chainId"}}}
    assert peer.error("createSession", unknown)["code"] == -32602
