"""connect.js with several clients on a page: session changes, and renewed subscriptions."""

from __future__ import annotations

from typing import Any

from tests.support.browser import needs_chromium
from tests.wallets.pages.stage import NO_SESSION, SCOPES, Stage

pytestmark = needs_chromium

MAINNET = {**SCOPES["eip155:1"], "methods": ["eth_subscribe", "eth_unsubscribe"]}
ALLOWED = {"eip155:1": {**MAINNET, "notifications": ["eth_subscription"]}}
SESSION = {"sessionScopes": ALLOWED, "sessionProperties": {}}
CHANGED = "wallet_sessionChanged"

LISTEN = """() => {
    window.first = portcullis.transport();
    window.second = portcullis.transport();
    window.told = { first: [], second: [] };
    first.onNotification((event) => told.first.push(event));
    second.onNotification((event) => told.second.push(event));
}"""

REQUEST = """([method, params]) => {
    window.answered = first.request({ method, params });
}"""


def paired(stage: Stage) -> None:
    """Pair the dapp, with a session and two further clients."""
    stage.create_session()
    stage.answer("wallet_createSession", SESSION)
    stage.heard(1)
    stage.page.evaluate(LISTEN)


def request(stage: Stage, method: str, params: Any = None) -> None:
    """Send a request with the first transport."""
    stage.page.evaluate(REQUEST, [method, params])


def told(stage: Stage, name: str) -> list[Any]:
    """Return the scopes of the session changes that a transport has received."""
    frames = stage.page.evaluate(f"told.{name}")
    return [frame["params"]["sessionScopes"] for frame in frames]


def reported(stage: Stage) -> list[Any]:
    """Return the scopes of the session changes that the bridge has received."""
    return [frame["params"]["sessionScopes"] for frame in stage.notified()]


def test_end_of_the_session_by_one_client_is_reported_to_all_others(stage: Stage):
    paired(stage)
    request(stage, "wallet_revokeSession")
    stage.answer("wallet_revokeSession", True)
    stage.until(stage.notified)
    assert reported(stage) == [{}]
    assert told(stage, "second") == [{}]
    assert stage.page.evaluate("answered")["result"] is True
    assert told(stage, "first") == []
    stage.ask(2, "wallet_getSession")
    assert stage.heard(2)["result"]["sessionScopes"] == {}


def test_partial_end_by_one_client_is_reported_with_what_is_left(stage: Stage):
    paired(stage)
    left = {"eip155:137": SCOPES["eip155:1"]}
    request(stage, "wallet_revokeSession", {"scopes": ["eip155:1"]})
    stage.answer("wallet_revokeSession", True)
    stage.answer("wallet_getSession", {**NO_SESSION, "sessionScopes": left})
    stage.until(stage.notified)
    assert reported(stage) == told(stage, "second") == [left]
    assert told(stage, "first") == []


def test_new_session_by_one_client_is_reported_to_all_others(stage: Stage):
    paired(stage)
    more = {**ALLOWED, "eip155:137": SCOPES["eip155:1"]}
    request(stage, "wallet_createSession", {"optionalScopes": {}})
    stage.answer("wallet_createSession", {**SESSION, "sessionScopes": more})
    stage.until(stage.notified)
    assert reported(stage) == told(stage, "second") == [more]
    assert told(stage, "first") == []


def test_change_in_the_wallet_is_reported_to_all(stage: Stage):
    paired(stage)
    stage.say(method=CHANGED, params={"sessionScopes": {}})
    stage.until(stage.notified)
    assert reported(stage) == told(stage, "first") == told(stage, "second") == [{}]


# Subscriptions


def subscribe(stage: Stage, number: int, subscription: str) -> None:
    """Make the dapp subscribe, and answer with an id."""
    inner = {"method": "eth_subscribe", "params": ["newHeads"]}
    stage.ask(number, "wallet_invokeMethod", {"scope": "eip155:1", "request": inner})
    frame = stage.answer("wallet_invokeMethod", subscription)
    assert frame["params"]["request"] == inner
    assert stage.heard(number)["result"] == subscription


def notify(stage: Stage, subscription: str, result: str) -> None:
    """Send an event of a subscription."""
    inner = {"subscription": subscription, "result": result}
    notification = {"method": "eth_subscription", "params": inner}
    params = {"scope": "eip155:1", "notification": notification}
    stage.say(method="wallet_notify", params=params)


def notifications(stage: Stage) -> list[Any]:
    """Return the members of the subscriptions' events that the dapp has received."""
    return [frame["params"]["notification"]["params"] for frame in stage.notified()]


def restart(stage: Stage) -> None:
    """Close the socket like a restarting server, and wait for the next one."""
    opened = len(stage.sockets)
    stage.sockets[-1].close(code=1012)
    stage.until(lambda: len(stage.sockets) > opened)


def test_subscriptions_are_renewed_after_a_restart(stage: Stage):
    paired(stage)
    subscribe(stage, 2, "0xaa")
    notify(stage, "0xaa", "before")
    restart(stage)
    renewed = stage.answer("wallet_invokeMethod", "0xbb")
    assert renewed["params"]["request"]["params"] == ["newHeads"]
    stage.answer("wallet_getSession", SESSION)
    notify(stage, "0xbb", "after")
    stage.until(lambda: len(stage.notified()) == 2)
    assert notifications(stage) == [
        {"subscription": "0xaa", "result": "before"},
        {"subscription": "0xaa", "result": "after"},
    ]


def test_renewed_subscription_ends_by_the_id_that_the_page_knows(stage: Stage):
    paired(stage)
    subscribe(stage, 2, "0xaa")
    restart(stage)
    renewal = stage.asked("wallet_invokeMethod")
    inner = {"method": "eth_unsubscribe", "params": ["0xaa"]}
    stage.ask(3, "wallet_invokeMethod", {"scope": "eip155:1", "request": inner})
    stage.say(id=renewal["id"], result="0xbb")
    ended = stage.answer("wallet_invokeMethod", True)
    assert ended["params"]["request"] == {**inner, "params": ["0xbb"]}
    assert stage.heard(3)["result"] is True
    restart(stage)
    stage.answer("wallet_getSession", SESSION)
    assert not [f for f in stage.frames if f["method"] == "wallet_invokeMethod"]


def test_subscription_that_is_not_renewed_is_reported(stage: Stage):
    paired(stage)
    subscribe(stage, 2, "0xaa")
    restart(stage)
    error = {"code": -32005, "message": "Request limit exceeded."}
    frame = stage.asked("wallet_invokeMethod")
    stage.say(id=frame["id"], error=error)
    stage.until(stage.notified)
    assert notifications(stage) == [{"subscription": "0xaa", "error": error}]


def test_subscription_that_the_session_lost_is_not_renewed(stage: Stage):
    paired(stage)
    subscribe(stage, 2, "0xaa")
    stage.say(method=CHANGED, params={"sessionScopes": {}})
    stage.until(stage.notified)
    restart(stage)
    stage.answer("wallet_getSession", NO_SESSION)
    assert not [f for f in stage.frames if f["method"] == "wallet_invokeMethod"]
