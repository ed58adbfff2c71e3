"""connect.js on a third-party page in a real browser: how it handles each frame."""

from __future__ import annotations

import pytest
from django.utils import timezone

from tests.support.browser import needs_chromium
from tests.support.wallet import BY_USER
from tests.wallets.pages.stage import NO_SESSION, SCOPES, SESSION, TOKEN, Stage
from wallets.models import ConsentRequest, DappToken, LiveSocket
from wallets.services.dapps import disconnect_all
from wallets.services.tokens import RENEWED_AFTER

pytestmark = needs_chromium

MAKE_OLD = """() => {
    const name = Object.keys(localStorage).find((key) => !/:(session|chain)$/.test(key));
    const kept = JSON.parse(localStorage.getItem(name));
    localStorage.setItem(name, JSON.stringify({ ...kept, tokenSince: 0 }));
}"""
"""Makes the page, and other pages of the origin, treat their token as an old one."""

CONNECT_ANEW = """() => {
    const name = Object.keys(localStorage).find((key) => !/:(session|chain)$/.test(key));
    const kept = { token: "next", tokenSince: Date.now() };
    localStorage.setItem(name, JSON.stringify(kept));
}"""
"""Makes another page store a new token. This page gets the event later."""

REFUSE_AND_REPLACE = """(isSeenBefore) => {
    const name = Object.keys(localStorage).find((key) => !/:(session|chain)$/.test(key));
    const kept = { ...JSON.parse(localStorage.getItem(name)), tokenSince: Date.now() };
    const replace = () => {
        localStorage.setItem(name, JSON.stringify({ ...kept, token: "fresh" }));
        dispatchEvent(new StorageEvent("storage", { key: name }));
    };
    window.fetch = async () => {
        if (isSeenBefore) replace();
        else setTimeout(replace, 200);
        return new Response("{}", { status: 400 });
    };
}"""
"""Makes the wallet reject a token. This page sees its successor before or afterwards."""

HURRY = """
    const later = setTimeout;
    window.setTimeout = (call, milliseconds) => later(call, milliseconds / 20);
"""
"""Shortens the seconds in which the page waits for a successor of its rejected token."""

IS_OLD = """() => {
    const name = Object.keys(localStorage).find((key) => !/:(session|chain)$/.test(key));
    return JSON.parse(localStorage.getItem(name)).tokenSince === 0;
}"""


def test_wallet_is_announced_at_once_and_on_each_request(stage: Stage):
    stage.page.evaluate("dispatchEvent(new Event('caip294:wallet_prompt'))")
    first, second = stage.page.evaluate("announced")
    assert first == second
    assert first["method"] == "wallet_announce"
    params = first["params"]
    assert (params["name"], params["icon"][:11]) == ("Portcullis", "data:image/")
    assert {"type": "caip-348", "value": "window.postMessage"} in params["targets"]
    assert len(params["uuid"]) == 36


def test_without_a_token_the_user_is_not_asked(stage: Stage):
    stage.ask(7, "wallet_getSession")
    assert stage.heard(7) == {"jsonrpc": "2.0", "id": 7, "result": NO_SESSION}
    stage.ask("a", "wallet_revokeSession")
    assert stage.heard("a")["result"] is True
    stage.ask(8, "wallet_invokeMethod", {})
    assert stage.heard(8)["error"]["code"] == 4100
    stage.ask(9, "eth_chainId")
    assert stage.heard(9)["error"]["code"] == -32601
    assert stage.sockets == []


def test_session_is_reported_at_once_and_kept_true_by_events(stage: Stage):
    stage.create_session()
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


def test_consent_that_came_late_is_reported_as_an_event_too(stage: Stage):
    """Dapps that were written for MetaMask stop waiting for a response after 30 s."""
    stage.create_session()
    stage.page.evaluate("const now = Date.now; Date.now = () => now() + 31_000")
    stage.answer("wallet_createSession", SESSION)
    assert stage.heard(1)["result"] == SESSION
    assert [n["params"] for n in stage.notified()] == [{"sessionScopes": SCOPES}]


def test_calls_of_several_askers_find_back_to_each(stage: Stage):
    stage.create_session()
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


def test_lost_socket_is_opened_again_and_what_was_missed_is_reported(stage: Stage):
    stage.create_session()
    stage.answer("wallet_createSession", SESSION)
    stage.heard(1)
    stage.sockets[-1].close(code=1012)
    stage.until(lambda: len(stage.sockets) == 2)
    stage.answer("wallet_getSession", NO_SESSION)
    stage.until(stage.notified)
    assert [n["method"] for n in stage.notified()] == ["wallet_sessionChanged"]
    assert stage.notified()[0]["params"] == {"sessionScopes": {}}


def test_page_that_is_loaded_again_is_paired_still(stage: Stage):
    stage.create_session()
    stage.answer("wallet_createSession", SESSION)
    stage.heard(1)
    stage.page.reload()
    stage.until(lambda: len(stage.sockets) == 2)
    stage.ask(5, "wallet_getSession")
    assert stage.heard(5)["result"] == SESSION


def test_token_that_was_revoked_is_forgotten(stage: Stage):
    stage.create_session()
    stage.answer("wallet_createSession", SESSION)
    stage.heard(1)
    stage.sockets[-1].close(code=4401)
    stage.until(stage.notified)
    stage.ask(6, "wallet_getSession")
    assert stage.heard(6)["result"] == NO_SESSION
    stage.page.wait_for_timeout(800)
    assert len(stage.sockets) == 1


def test_page_that_learns_late_of_a_revoked_token_keeps_the_next_one(stage: Stage):
    """Another page has received the event earlier, and the user has connected again there."""
    stage.create_session()
    stage.answer("wallet_createSession", SESSION)
    stage.heard(1)
    stage.page.evaluate(CONNECT_ANEW)
    stage.sockets[-1].close(code=4401)
    stage.until(lambda: len(stage.sockets) == 2)
    assert stage.page.evaluate(TOKEN) == "next"


def test_token_that_was_revoked_while_the_page_was_closed_is_rejected(stage: Stage):
    stage.create_session()
    stage.answer("wallet_createSession", SESSION)
    stage.heard(1)
    stage.page.goto("about:blank")
    stage.page.add_init_script(HURRY)
    disconnect_all(user=stage.person.user, cause=BY_USER)
    stage.is_played = False
    stage.page.goto(stage.origin)
    stage.until(stage.notified)
    assert stage.notified()[0]["params"] == {"sessionScopes": {}}
    stage.ask(2, "wallet_getSession")
    assert stage.heard(2)["result"] == NO_SESSION


def test_old_token_is_renewed_by_one_page_and_used_by_all(stage: Stage):
    """Ten pages connect at the same time after two days, to the real service."""
    stage.is_played = False
    window = stage.window()
    window.get_by_role("button", name="Connect").click()
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
    sockets = LiveSocket.objects.filter(**of_user)
    # A page that has not opened its socket yet would renew the token before the others.
    stage.until(lambda: sockets.count() == len(pages))
    stage.page.evaluate(MAKE_OLD)
    for page in pages:
        page.wait_for_function(IS_OLD)
    for page in pages:
        page.reload(wait_until="commit")
    stage.until(lambda: tokens.get().digest != old)
    stage.until(lambda: sockets.count() == len(pages))
    token = tokens.get()
    assert token.former_digest == ""  # the new token was used
    # Usually one renewal, because pages see each other's storage with a delay.
    assert 1 <= len(renewals) < len(pages)


@pytest.mark.parametrize("is_seen_before", [True, False])
def test_token_that_another_page_has_replaced_is_not_forgotten(
    stage: Stage, is_seen_before: bool
):
    stage.create_session()
    stage.answer("wallet_createSession", SESSION)
    stage.heard(1)
    stage.page.evaluate(MAKE_OLD)
    stage.page.evaluate(REFUSE_AND_REPLACE, is_seen_before)
    stage.sockets[-1].close(code=1012)
    stage.until(lambda: len(stage.sockets) == 2)
    assert stage.page.evaluate(TOKEN) == "fresh"


def test_outage_is_waited_out_with_token_and_session(stage: Stage):
    stage.create_session()
    stage.answer("wallet_createSession", SESSION)
    stage.heard(1)
    stage.page.evaluate(MAKE_OLD)
    stage.context.route("**/wallet/token", lambda route: route.abort())
    stage.sockets[-1].close(code=1012)
    stage.until(lambda: len(stage.sockets) == 2)  # with its present token
    stage.answer("wallet_getSession", SESSION)
    stage.ask(5, "wallet_getSession")
    assert stage.heard(5)["result"] == SESSION
    assert stage.notified() == []


def test_transport_times_out_as_clients_expect(stage: Stage):
    stage.create_session()
    stage.answer("wallet_createSession", SESSION)
    stage.heard(1)
    name = stage.page.evaluate(
        """() => portcullis.transport().request(
            { method: "wallet_invokeMethod", params: {} }, { timeout: 50 }
        ).catch((error) => error.name)"""
    )
    assert name == "TransportTimeoutError"
