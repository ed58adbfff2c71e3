"""The windows that connect.js opens: pairing, consent and signatures."""

from __future__ import annotations

import re

from django.contrib.auth.hashers import PBKDF2PasswordHasher
from playwright.sync_api import Route

from tests.support.browser import needs_chromium
from tests.support.signing import PASSPHRASE, add_key, signer_of
from tests.support.wallet import BY_USER
from tests.wallets.pages.stage import NO_SESSION, SESSION, TOKEN, Stage
from wallets.models import ConsentRequest, Dapp
from wallets.services.dapps import block_dapp

pytestmark = needs_chromium


def test_dapp_is_let_in_reads_the_chain_and_gets_events(stage: Stage):
    """The whole use of a dapp: pairing, consent, calls, edit and revocation."""
    stage.is_played = False
    window = stage.window()
    window.get_by_role("button", name="Connect").click()
    # The window was redirected to this page.
    window.get_by_role("checkbox", name="Polygon").uncheck()
    window.get_by_role("button", name="Approve").click()
    assert list(stage.heard(1)["result"]["sessionScopes"]) == ["eip155:1"]
    call = {"scope": "eip155:1", "request": {"method": "eth_chainId"}}
    stage.ask(2, "wallet_invokeMethod", call)
    assert stage.heard(2)["result"] == "0x1"
    wallet = stage.wallet("connections")
    wallet.get_by_role("listitem").filter(has_text="localhost").get_by_text(
        "Edit"
    ).click()
    wallet.get_by_role("checkbox", name="Dev").check()
    wallet.get_by_role("button", name="Save").click()
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


def test_user_is_led_to_the_signature_request(stage: Stage):
    """The window shows the request. A call that is rejected immediately opens no window."""
    account = add_key(stage.person.user)
    stage.is_played = False
    window = stage.window()
    window.get_by_role("button", name="Connect").click()
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
    # The window closes after the decision.
    stage.until(lambda: stage.pages == [stage.page])
    sign(3, "0x1")
    assert stage.heard(3)["error"]["code"] == -32602
    stage.page.wait_for_timeout(500)
    assert stage.pages == [stage.page]


def test_window_with_a_fault_stays_to_be_read(stage: Stage):
    def fail(route: Route) -> None:
        answer = route.fetch()
        fault = '<p class="notice error" role="status">Not sent.</p><h1>'
        route.fulfill(response=answer, body=answer.text().replace("<h1>", fault, 1))

    decided = f"{stage.base_url}/wallet/?of=https://dapp.example&done="
    stage.context.route(decided, fail)
    with stage.context.expect_page() as opened:
        stage.page.evaluate("url => void open(url)", decided)
    opened.value.wait_for_url(f"{stage.base_url}/wallet/")
    opened.value.get_by_text("Not sent.").wait_for()
    stage.context.unroute(decided)
    with stage.context.expect_page() as other:  # which has no pending request
        stage.page.evaluate("url => void open(url)", decided)
    stage.until(other.value.is_closed)
    assert not opened.value.is_closed()


def test_window_closes_after_a_request_that_the_wallet_rejects(stage: Stage):
    stage.is_played = False
    params = {"optionalScopes": {"eip155:99": {"methods": [], "notifications": []}}}
    with stage.context.expect_page() as opened:
        stage.ask(1, "wallet_createSession", params)
    opened.value.get_by_role("button", name="Connect").click()
    assert stage.heard(1)["error"]["code"] == 5100
    stage.until(opened.value.is_closed)


def paired(stage: Stage) -> None:
    """Pair the page with the service, and wait until it knows that it has no session."""
    stage.is_played = False
    stage.pair()
    stage.until(lambda: stage.page.evaluate("localStorage.length") > 1)


def test_request_of_a_paired_page_opens_a_window_that_waits_for_it(stage: Stage):
    paired(stage)
    again = stage.window()
    again.get_by_role("button", name="Approve").click()
    stage.until(lambda: any("result" in one for one in stage.page.evaluate("heard")))


def test_session_that_is_refused_at_once_opens_no_window(stage: Stage):
    paired(stage)
    stage.ask(2, "wallet_createSession", {"optionalScopes": "all"})
    assert stage.heard(2)["error"]["code"] == -32602
    stage.page.wait_for_timeout(500)
    assert stage.pages == [stage.page]


def test_first_session_pairs_the_page_on_the_wallets_own_page(stage: Stage):
    window = stage.window()
    window.get_by_text(str(stage.person.user)).first.wait_for()
    assert "localhost" in window.locator("h1").inner_text()
    window.get_by_role("button", name="Connect").click()
    stage.exchange()
    window.wait_for_url(re.compile(r"/wallet/\?of="))  # which redirects to the request
    stage.answer("wallet_getSession", NO_SESSION)
    frame = stage.answer("wallet_createSession", SESSION)
    assert list(frame["params"]["optionalScopes"]) == ["eip155:1", "eip155:137"]
    assert stage.heard(1)["result"] == SESSION
    dapp = Dapp.objects.get(user=stage.person.user, ident=stage.origin)
    assert dapp.tokens.count() == 1


def test_page_that_is_rejected_gets_the_error_4001(stage: Stage):
    window = stage.window()
    window.get_by_role("button", name="Reject").click()
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
    window.get_by_role("button", name="Connect").wait_for()
    forged = {"type": "portcullis:answer", "code": "stolen", "state": "x"}
    stage.page.evaluate("message => postMessage(message, '*')", forged)
    window.evaluate("message => opener.postMessage(message, '*')", forged)
    stage.page.wait_for_timeout(300)
    assert stage.exchanges == []


# Closing the window


def has_no_pending(stage: Stage) -> bool:
    pending = ConsentRequest.objects.pending().filter(dapp__user=stage.person.user)
    return not pending.exists()


def test_window_that_is_closed_after_the_pairing_is_a_no(stage: Stage):
    stage.is_played = False
    window = stage.window()
    window.get_by_role("button", name="Connect").click()
    window.get_by_role("button", name="Approve").wait_for()
    window.close()
    assert stage.heard(1)["error"]["code"] == 4001
    assert has_no_pending(stage)


def test_window_of_a_paired_page_opens_again_after_it_was_closed(stage: Stage):
    paired(stage)
    for _ in range(2):
        stage.page.evaluate("heard.length = 0")
        window = stage.window()
        window.get_by_role("button", name="Approve").wait_for()
        window.close()
        assert stage.heard(1)["error"]["code"] == 4001
        assert has_no_pending(stage)
    stage.page.evaluate("heard.length = 0")
    stage.window().get_by_role("button", name="Approve").click()
    assert list(stage.heard(1)["result"]["sessionScopes"]) == ["eip155:1", "eip155:137"]


def test_request_of_another_page_of_the_origin_is_shown_again(stage: Stage):
    """The second page can't ask while the first one does, but shows what is pending."""
    paired(stage)
    first = stage.window()
    first.get_by_role("button", name="Approve").wait_for()
    other = stage.open()
    with stage.context.expect_page() as opened:
        other.get_by_role("button", name="Connect").click()
    opened.value.get_by_role("button", name="Approve").wait_for()
    (answer,) = stage.until(lambda: other.evaluate("heard"))
    assert answer["error"]["code"] == -32002
    opened.value.close()
    first.get_by_role("button", name="Approve").click()
    stage.until(lambda: any("result" in one for one in stage.page.evaluate("heard")))


def test_signature_request_ends_when_its_window_is_closed(stage: Stage):
    account = add_key(stage.person.user)
    stage.connect(account.address)
    stage.until(stage.notified)
    request = {"method": "personal_sign", "params": ["0x48", account.address]}
    call = {"scope": "eip155:1", "request": request}
    with stage.context.expect_page() as opened:
        stage.ask(2, "wallet_invokeMethod", call)
    opened.value.get_by_text("asks you to sign a message").wait_for()
    # Another request does not replace the one that the user reads.
    stage.ask(3, "wallet_invokeMethod", call)
    pending = ConsentRequest.objects.pending().filter(dapp__user=stage.person.user)
    stage.until(lambda: pending.count() == 2)
    stage.page.wait_for_timeout(500)
    assert stage.pages == [stage.page, opened.value]
    opened.value.close()
    assert {stage.heard(number)["error"]["code"] for number in (2, 3)} == {4001}
    assert has_no_pending(stage)


def test_blocked_page_is_answered_and_the_user_not_asked(stage: Stage):
    paired(stage)
    block_dapp(
        dapp=Dapp.objects.get(user=stage.person.user, ident=stage.origin), cause=BY_USER
    )
    stage.until(lambda: stage.page.evaluate(TOKEN) is None)
    stage.page.evaluate("heard.length = 0")
    stage.page.reload()
    window = stage.window()
    window.get_by_role("heading", name="Blocked").wait_for()
    assert stage.heard(1)["error"]["code"] == 4001
    assert not window.is_closed()  # the page explains the reason and the remedy
    assert window.get_by_role("button", name="Connect").count() == 0


def test_login_in_the_window_leads_back_to_the_request(stage: Stage):
    user = stage.person.user
    user.password = PBKDF2PasswordHasher().encode("a password", "salt")
    user.save()
    stage.context.clear_cookies()
    stage.is_played = False
    window = stage.window()
    window.get_by_role("link", name="Log in").click()
    window.get_by_label("Email").fill(user.email)
    window.get_by_label("Password").fill("a password")
    window.get_by_role("button", name="Log in").click()
    window.get_by_role("button", name="Connect").click()
    window.get_by_role("button", name="Approve").click()
    assert list(stage.heard(1)["result"]["sessionScopes"]) == ["eip155:1", "eip155:137"]
