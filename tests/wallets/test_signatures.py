"""Cases 108–110 and 112 of the specification's list, without sockets."""

from __future__ import annotations

import asyncio
import json
import logging
from datetime import timedelta
from threading import Barrier, Thread

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tests.support.signing import (
    KEY,
    MAIL,
    OTHER_KEY,
    PASSPHRASE,
    SIGNER,
    add_key,
    sign_pending,
    signer_of,
    signer_of_data,
)
from tests.support.waiting import loop_turns, wait_until
from tests.support.wallet import A1, BY_USER, M0, UNAUTHORIZED, Rig
from wallets.consents import get_consent
from wallets.errors import Unauthorized
from wallets.models import Activity, ConsentRequest, Event, Keystore, RequestState
from wallets.permissions import Group
from wallets.services import requests, sessions
from wallets.services.accounts import remove_account
from wallets.services.keystores import delete_key
from wallets.services.requests import NotPending, withdraw_requests
from wallets.services.sessions import Stale
from wallets.services.signatures import MAX_WAITING, approve_signature
from wallets.signature_requests import get_signature_request
from wallets.signing.keys import WrongPassphrase, address_of

INVOKE = "wallet_invokeMethod"
HELLO = "0x" + b"Hello".hex()
SIGN = ("personal_sign", HELLO, SIGNER)
REJECTED = (4001, "User rejected the request.")


@pytest.fixture
def signing(rig: Rig) -> Rig:
    """Return a rig whose dapp may use an account with a key, and another one."""
    rig.account3 = add_key(rig.user)
    rig.create("eip155:1", "eip155:137", accounts={SIGNER, A1})
    return rig


def asked(rig: Rig, *call: object, scope: str = "eip155:1"):
    """Return a call that waits for the user's decision."""
    return rig.start(rig.s1, rig.invoke(scope, *call), INVOKE)


def refusal(rig: Rig, *call: object, scope: str = "eip155:1") -> tuple[int, str]:
    """Return a call's error, and check that the user is not asked."""
    error = rig.error(rig.s1, INVOKE, rig.invoke(scope, *call))
    assert not ConsentRequest.objects.pending().filter(dapp=rig.dapp).exists()
    return error.code, error.message


def ended(rig: Rig, task) -> tuple[int, str]:
    error = rig.finish(task)
    return error.code, error.message


def methods_of(session) -> list[str]:
    return session["sessionScopes"]["eip155:1"]["methods"]


def test_message_is_signed_by_the_account(signing: Rig):
    task = asked(signing, *SIGN)
    sign_pending(signing.pending())
    assert signer_of(b"Hello", signing.finish(task)) == SIGNER
    line = Activity.objects.filter(user=signing.user).latest("id")
    assert line.event == Event.SIGNED
    assert line.details == {"method": "personal_sign", "account": f"eip155:1:{SIGNER}"}


@pytest.mark.parametrize(
    "params",
    [
        (HELLO, SIGNER.upper().replace("X", "x")),
        (SIGNER, HELLO),
        (HELLO, SIGNER, "Example password"),
        ("Hello", SIGNER),
    ],
    ids=["case of the address", "order of eth_sign", "with a password", "text"],
)
def test_forms_in_which_dapps_ask_mean_the_same(signing: Rig, params):
    task = asked(signing, "personal_sign", *params)
    sign_pending(signing.pending())
    assert signer_of(b"Hello", signing.finish(task)) == SIGNER


@pytest.mark.parametrize("form", [MAIL, json.dumps(MAIL)], ids=["object", "text"])
def test_typed_data_is_signed_by_the_account(signing: Rig, form):
    task = asked(signing, "eth_signTypedData_v4", SIGNER, form)
    sign_pending(signing.pending())
    assert signer_of_data(MAIL, signing.finish(task)) == SIGNER


@pytest.mark.parametrize(
    "address", [address_of(OTHER_KEY), "0x12", "", A1], ids=["other", "short", "", "A1"]
)
def test_case_108_account_that_may_not_sign_is_refused(signing: Rig, address):
    """The account is not granted, not an account of the user, or watch-only."""
    assert refusal(signing, "personal_sign", HELLO, address) == UNAUTHORIZED
    assert refusal(signing, "eth_signTypedData_v4", address, MAIL) == UNAUTHORIZED


@pytest.mark.parametrize("method", ["personal_sign", "eth_signTypedData_v4"])
def test_case_109_user_says_no(signing: Rig, method):
    params = (HELLO, SIGNER) if method == "personal_sign" else (SIGNER, MAIL)
    task = asked(signing, method, *params)
    signing.reject()
    assert ended(signing, task) == REJECTED


@pytest.mark.parametrize("chain_id", [2, 137, "0x89", 0])
def test_case_110_data_for_another_chain_is_refused(signing: Rig, chain_id):
    data = {**MAIL, "domain": {**MAIL["domain"], "chainId": chain_id}}
    code, message = refusal(signing, "eth_signTypedData_v4", SIGNER, data)
    assert code == -32602
    assert "chainId" in message


@pytest.mark.parametrize(
    "call",
    [
        ("personal_sign",),
        ("personal_sign", HELLO),
        ("personal_sign", 5, SIGNER),
        ("personal_sign", "0x1", SIGNER),
        ("personal_sign", "x" * 33_000, SIGNER),
        ("personal_sign", HELLO, SIGNER, "", ""),
        ("eth_signTypedData_v4", SIGNER),
        ("eth_signTypedData_v4", MAIL, SIGNER),
        ("eth_signTypedData_v4", SIGNER, "{"),
        ("eth_signTypedData_v4", SIGNER, {**MAIL, "primaryType": "Male"}),
        ("eth_signTypedData_v4", SIGNER, {**MAIL, "message": {}}),
    ],
)
def test_what_can_not_be_read_is_refused(signing: Rig, call):
    assert refusal(signing, *call)[0] == -32602


def test_case_112_what_the_user_has_unticked_is_refused(rig: Rig):
    add_key(rig.user)
    session = rig.create(accounts={SIGNER}, groups=frozenset({Group.READ}))
    assert "personal_sign" not in methods_of(session)
    assert refusal(rig, *SIGN) == UNAUTHORIZED


def test_signing_is_offered_with_a_key_alone(rig: Rig):
    assert "personal_sign" not in methods_of(rig.create())
    add_key(rig.user)
    assert "personal_sign" not in methods_of(rig.create(accounts={A1}))
    assert methods_of(rig.create(accounts={A1, SIGNER}))[:2] == [
        "personal_sign",
        "eth_signTypedData_v4",
    ]


def test_signing_is_offered_with_a_key_that_is_added_before_the_decision(rig: Rig):
    task = rig.start(rig.s1, {"optionalScopes": {"eip155:1": M0}})
    assert "personal_sign" not in get_consent(rig.pending()).asked["eip155:1"].methods
    add_key(rig.user)
    rig.approve(accounts={SIGNER})
    assert methods_of(rig.finish(task))[:2] == ["personal_sign", "eth_signTypedData_v4"]


@pytest.mark.parametrize("take", [delete_key, remove_account])
def test_signing_is_taken_back_with_the_last_key(signing: Rig, take):
    task = asked(signing, *SIGN)
    take(account=signing.account3, cause=BY_USER)
    assert ended(signing, task) == UNAUTHORIZED
    assert "personal_sign" not in methods_of(signing.session())


def test_other_keys_go_on_signing(signing: Rig):
    other = add_key(signing.user, OTHER_KEY)
    signing.create("eip155:1", accounts={SIGNER, other.address})
    one, two = (
        asked(signing, *SIGN),
        asked(signing, "personal_sign", HELLO, other.address),
    )
    delete_key(account=signing.account3, cause=BY_USER)
    assert ended(signing, one) == UNAUTHORIZED
    sign_pending(signing.pending())
    assert signer_of(b"Hello", signing.finish(two)) == other.address


def test_some_may_wait_and_one_more_is_refused(signing: Rig):
    tasks = [asked(signing, *SIGN) for _ in range(MAX_WAITING)]
    error = signing.error(signing.s2, INVOKE, signing.invoke("eip155:1", *SIGN))
    assert (error.code, "already pending" in error.message) == (-32002, True)
    for request in ConsentRequest.objects.pending().filter(dapp=signing.dapp):
        sign_pending(request)
    assert {signer_of(b"Hello", signing.finish(task)) for task in tasks} == {SIGNER}


def test_signatures_and_a_session_are_asked_side_by_side(signing: Rig):
    task = asked(signing, *SIGN)
    session = signing.start(signing.s1, {"optionalScopes": {"eip155:1337": {
        "methods": [], "notifications": []}}})  # fmt: skip
    own = ConsentRequest.objects.pending().filter(dapp=signing.dapp)
    assert own.count() == 2
    requests.reject_request(
        request_id=own.get(method="wallet_createSession").pk,
        user=signing.user,
        cause=BY_USER,
    )
    assert signing.finish(session).code == 4001
    sign_pending(signing.pending())
    assert signer_of(b"Hello", signing.finish(task)) == SIGNER


def test_what_is_signed_does_not_count_as_asking_too_often(signing: Rig):
    for _ in range(requests.MAX_UNAPPROVED + 2):
        task = asked(signing, *SIGN)
        sign_pending(signing.pending())
        assert signer_of(b"Hello", signing.finish(task)) == SIGNER


@pytest.mark.parametrize(
    ("state", "is_asked"), [(RequestState.FAILED, True), (RequestState.EXPIRED, False)]
)
def test_what_the_user_said_yes_to_was_not_asked_in_vain(signing: Rig, state, is_asked):
    """A node that rejects transactions does not cause a rate limit error."""
    for _ in range(requests.MAX_UNAPPROVED):
        ConsentRequest.objects.create(
            dapp=signing.dapp,
            method="eth_sendTransaction",
            body={"scope": "eip155:1", "address": SIGNER},
            state=state,
            socket="s1",
            expires_at=timezone.now(),
        )
    if is_asked:
        task = asked(signing, *SIGN)
        signing.reject()
        assert ended(signing, task) == REJECTED
    else:
        assert refusal(signing, *SIGN)[0] == -32005


def test_request_expires(signing: Rig):
    task = asked(signing, *SIGN)
    late = ConsentRequest.objects.filter(pk=signing.pending().pk)
    request = late.get()
    late.update(expires_at=timezone.now() - timedelta(seconds=1))
    with pytest.raises(NotPending):
        sign_pending(request)
    requests.expire_request(request_id=request.pk)
    assert ended(signing, task) == REJECTED


def test_request_of_a_socket_that_has_gone_is_withdrawn(signing: Rig):
    task = asked(signing, *SIGN)
    request = signing.pending()

    async def go() -> None:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    def is_withdrawn() -> bool:
        signing.run(loop_turns())
        request.refresh_from_db()
        return request.state == RequestState.WITHDRAWN

    signing.run(go())
    wait_until(is_withdrawn)
    with pytest.raises(NotPending):
        sign_pending(request)


@pytest.mark.parametrize("names", [None, ["eip155:1"]], ids=["all", "one scope"])
def test_after_a_revoke_nothing_is_signed(signing: Rig, names):
    task = asked(signing, *SIGN)
    request = signing.pending()
    sessions.revoke_session(dapp_id=signing.dapp.pk, cause=BY_USER, names=names)
    assert ended(signing, task) == UNAUTHORIZED
    with pytest.raises(NotPending):
        sign_pending(request)
    assert refusal(signing, *SIGN) == UNAUTHORIZED


def test_other_changes_leave_a_request_waiting(signing: Rig):
    task = asked(signing, *SIGN)
    sessions.revoke_session(
        dapp_id=signing.dapp.pk, cause=BY_USER, names=["eip155:137"]
    )
    sign_pending(signing.pending())
    assert signer_of(b"Hello", signing.finish(task)) == SIGNER


def test_session_that_ended_during_the_request_gets_no_signature(signing: Rig):
    """Even before the expiry has been recorded."""
    task = asked(signing, *SIGN)
    request = signing.pending()
    signing.dapp.session.refresh_from_db()
    type(signing.dapp.session).objects.filter(dapp=signing.dapp).update(
        expires_at=timezone.now()
    )
    with pytest.raises((Stale, NotPending)):
        sign_pending(request)
    withdraw_requests(socket="s1")
    assert isinstance(signing.finish(task), Unauthorized)


def test_digest_of_another_request_approves_nothing(signing: Rig):
    asked(signing, *SIGN)
    first = signing.pending()
    asked(signing, "personal_sign", "0x" + b"Evil".hex(), SIGNER)
    second = ConsentRequest.objects.pending().filter(dapp=signing.dapp).latest("id")
    with pytest.raises(Stale):
        approve_signature(
            request_id=second.pk,
            user=signing.user,
            digest=get_signature_request(first).digest,
            passphrase=PASSPHRASE,
            cause=BY_USER,
        )
    assert Keystore.objects.get(account=signing.account3).tries == 0
    withdraw_requests(socket="s1")


def test_wrong_passphrase_leaves_the_request_waiting(signing: Rig):
    task = asked(signing, *SIGN)
    with pytest.raises(WrongPassphrase):
        sign_pending(signing.pending(), "wrong")
    sign_pending(signing.pending())
    assert signer_of(b"Hello", signing.finish(task)) == SIGNER


def test_approvals_at_the_same_time_sign_once(signing: Rig):
    task = asked(signing, *SIGN)
    request = signing.pending()
    barrier, outcomes = Barrier(2), []

    def approve() -> None:
        try:
            barrier.wait()
            sign_pending(request)
            outcomes.append("signed")
        except NotPending:
            outcomes.append("over")
        finally:
            connection.close()

    threads = [Thread(target=approve) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["over", "signed"]
    assert signer_of(b"Hello", signing.finish(task)) == SIGNER
    signed = Activity.objects.filter(user=signing.user, event=Event.SIGNED)
    assert signed.count() == 1


def test_no_log_holds_a_passphrase_or_a_key(signing: Rig, caplog):
    for logger in ("", "django"):
        caplog.set_level(logging.DEBUG, logger=logger)
    with CaptureQueriesContext(connection):
        task = asked(signing, *SIGN)
        with pytest.raises(WrongPassphrase):
            sign_pending(signing.pending(), "a wrong passphrase")
        sign_pending(signing.pending())
        signing.finish(task)
    logged = "\n".join(str(vars(record)) for record in caplog.records)
    assert "wallets_keystore" in logged
    for secret in (PASSPHRASE, "a wrong passphrase", KEY.hex()):
        assert secret not in logged
