"""Decisions of the user about requests for sessions, and the results for dapps."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import orjson
import pytest
from django.utils import timezone

from server.request_id import RequestId
from tests.support.wallet import A1, BY_USER, M0, Rig, Socket, new_user
from wallets.consents import get_consent
from wallets.methods.outer import answer
from wallets.models import ConsentRequest, Dapp, RequestState, Session
from wallets.permissions import Group
from wallets.proposals import Choice, NothingChosen
from wallets.services import accounts, consent, dapps, requests, sessions
from wallets.serving.context import Context

NO_SESSION = {"sessionScopes": {}, "sessionProperties": {}}
ONE = {"optionalScopes": {"eip155:1": M0}}


def test_request_without_a_decision_expires_like_a_rejection(rig: Rig, settings):
    settings.WALLETS_REQUEST_SECONDS = 0.2
    error = rig.finish(rig.start(rig.s1, ONE))
    assert (error.code, error.message) == (4001, "User rejected the request.")
    assert ConsentRequest.objects.get(dapp=rig.dapp).state == RequestState.EXPIRED


def test_expired_request_of_a_dead_process_does_not_block_new_requests(rig: Rig):
    task = rig.start(rig.s1, ONE)
    late = timezone.now() - timedelta(seconds=1)
    ConsentRequest.objects.filter(dapp=rig.dapp).update(expires_at=late)
    again = rig.start(rig.s2, ONE)
    rig.approve()
    assert "eip155:1" in rig.finish(again)["sessionScopes"]
    assert rig.finish(task).code == 4001


def test_other_dapps_can_create_requests_until_the_limit_of_pending_ones(
    rig: Rig, settings
):
    settings.WALLETS_MAX_PENDING = 2
    sockets = [
        Socket(rig.pair(f"https://{name}.example"), name) for name in ("q", "r", "t")
    ]
    tasks = [rig.start(socket, ONE) for socket in sockets[:2]]
    assert rig.code(sockets[2], "wallet_createSession", ONE) == -32005
    for request in ConsentRequest.objects.pending().filter(dapp__user=rig.user):
        requests.reject_request(request_id=request.pk, user=rig.user, cause=BY_USER)
    assert [rig.finish(task).code for task in tasks] == [4001, 4001]


def test_user_takes_a_group_out(rig: Rig):
    found = rig.create(groups=frozenset({Group.READ}))["sessionScopes"]["eip155:1"]
    assert "eth_chainId" in found["methods"]
    assert not {"eth_subscribe", "eth_unsubscribe"} & set(found["methods"])
    assert found["notifications"] == []


@pytest.mark.parametrize(("names", "ticked"), [({"eip155:1"}, set()), (set(), {A1})])
def test_choice_of_nothing_is_refused_and_the_request_waits(rig: Rig, names, ticked):
    task = rig.start(rig.s1, ONE)
    with pytest.raises(NothingChosen):
        rig.approve(names, ticked)
    assert not task.done()
    rig.approve()
    assert "eip155:1" in rig.finish(task)["sessionScopes"]


def approve(rig: Rig, request: ConsentRequest, digest: str, user=None):
    ticked = get_consent(request)
    return consent.approve_session(
        request_id=request.pk,
        user=user or rig.user,
        digest=digest,
        choice=Choice(frozenset(ticked.asked), addresses=frozenset(ticked.ticked)),
        cause=BY_USER,
    )


def test_other_users_can_not_decide(rig: Rig):
    rig.start(rig.s1, ONE)
    request, stranger = rig.pending(), new_user()
    with pytest.raises(ConsentRequest.DoesNotExist):
        approve(rig, request, get_consent(request).digest, stranger)
    with pytest.raises(ConsentRequest.DoesNotExist):
        requests.reject_request(request_id=request.pk, user=stranger, cause=BY_USER)
    assert rig.pending() == request


def test_decision_is_final(rig: Rig):
    task = rig.start(rig.s1, ONE)
    request = rig.pending()
    digest = get_consent(request).digest
    approve(rig, request, digest)
    with pytest.raises(requests.NotPending):
        approve(rig, request, digest)
    with pytest.raises(requests.NotPending):
        requests.reject_request(request_id=request.pk, user=rig.user, cause=BY_USER)
    assert "eip155:1" in rig.finish(task)["sessionScopes"]


def test_what_has_expired_can_be_approved_no_more(rig: Rig):
    rig.start(rig.s1, ONE)
    request = rig.pending()
    digest = get_consent(request).digest
    late = timezone.now() - timedelta(seconds=1)
    ConsentRequest.objects.filter(pk=request.pk).update(expires_at=late)
    with pytest.raises(requests.NotPending):
        approve(rig, request, digest)
    assert rig.session() == NO_SESSION


def test_decision_upon_an_old_page_grants_nothing(rig: Rig):
    rig.create("eip155:1", "eip155:137")
    rig.start(rig.s1, {"optionalScopes": {"eip155:1337": M0}})
    request = rig.pending()
    seen = get_consent(request).digest
    accounts.move_account(account=rig.account2, position=0, cause=BY_USER)
    with pytest.raises(sessions.Stale):
        approve(rig, request, seen)
    assert get_consent(request).digest != seen
    assert "eip155:1337" not in rig.session()["sessionScopes"]
    assert rig.pending() == request


def test_approval_after_a_revocation_grants_nothing(rig: Rig):
    rig.create()
    task = rig.start(rig.s1, {"optionalScopes": {"eip155:137": M0}})
    request = rig.pending()
    digest = get_consent(request).digest
    assert rig.result(rig.s2, "wallet_revokeSession", {}) is True
    assert rig.finish(task).code == 4001
    with pytest.raises(requests.NotPending):
        approve(rig, request, digest)
    assert rig.session() == NO_SESSION


def test_requests_of_a_socket_that_has_gone_are_withdrawn(rig: Rig):
    task = rig.start(rig.s1, ONE)
    other = rig.start(Socket(rig.pair("https://q.example"), "q"), ONE)
    requests.withdraw_requests(socket="s1")
    assert rig.finish(task).code == 4001
    assert rig.pending().dapp.ident == "https://q.example"
    rig.reject()
    rig.finish(other)


def test_session_that_changes_before_its_answer_is_out_is_answered_as_granted(rig: Rig):
    task = rig.start(rig.s1, {"optionalScopes": {"eip155:1": M0, "eip155:137": M0}})
    rig.approve()
    row = Session.objects.get(dapp=rig.dapp)
    choice = Choice(frozenset({"eip155:1"}), addresses=frozenset({rig.account1.named}))
    sessions.edit_session(
        dapp=rig.dapp, choice=choice, version=row.version, cause=BY_USER
    )
    answered = rig.run(_wait(task))
    assert list(orjson.loads(answered.result)["sessionScopes"]) == [
        "eip155:1",
        "eip155:137",
    ]
    now = rig.run(rig.wallet.store.session(rig.dapp.pk))
    assert (answered.session.version, answered.session.changed_by) == (1, "s1")
    assert (now.version, now.changed_by) == (2, "")
    assert list(now.scopes) == ["eip155:1"]


async def _wait(task):
    return await task


@pytest.mark.parametrize("delay", [0, 0.001, 0.003, 0.01, 0.05])
def test_call_that_is_cancelled_takes_its_request_back(rig: Rig, delay):
    """The call may be in a thread, or waiting for the user's decision."""

    async def call_and_leave() -> None:
        context = Context(RequestId(), rig.s1, rig.wallet)
        task = asyncio.create_task(answer(context, "wallet_createSession", ONE))
        await asyncio.sleep(delay)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    rig.run(call_and_leave())
    states = ConsentRequest.objects.filter(dapp=rig.dapp).values_list(
        "state", flat=True
    )
    assert set(states) <= {RequestState.WITHDRAWN}
    assert rig.create()["sessionScopes"]


def test_dapp_that_asks_and_takes_back_for_ever_is_stopped(rig: Rig):
    for _ in range(requests.MAX_UNAPPROVED):
        task = rig.start(rig.s1, ONE)
        requests.withdraw_requests(socket="s1")
        assert rig.finish(task).code == 4001
    assert rig.code(rig.s1, "wallet_createSession", ONE) == -32005


def test_three_quick_rejections_keep_a_dapp_quiet(rig: Rig):
    for _ in range(3):
        task = rig.start(rig.s1, ONE)
        rig.reject()
        assert rig.finish(task).code == 4001
    error = rig.error(rig.s1, "wallet_createSession", ONE)
    assert (error.code, error.message) == (4100, "Request blocked due to spam filter.")
    over = timezone.now() - timedelta(seconds=1)
    Dapp.objects.filter(pk=rig.dapp.pk).update(muted_until=over)
    task = rig.start(rig.s1, ONE)
    rig.reject()
    assert rig.finish(task).code == 4001


def test_slow_rejections_are_no_series(rig: Rig):
    for _ in range(4):
        task = rig.start(rig.s1, ONE)
        rig.reject()
        assert rig.finish(task).code == 4001
        earlier = timezone.now() - timedelta(seconds=31)
        Dapp.objects.filter(pk=rig.dapp.pk).update(last_rejected_at=earlier)


def test_blocked_dapp_cannot_ask(rig: Rig):
    created = rig.create()
    assert created["sessionScopes"]
    task = rig.start(rig.s2, {"optionalScopes": {"eip155:137": M0}})
    dapps.block_dapp(dapp=rig.dapp, cause=BY_USER)
    assert rig.finish(task).code == 4001
    assert rig.session() == NO_SESSION
    assert rig.code(rig.s1, "wallet_createSession", ONE) == 4100
    dapps.unblock_dapp(dapp=rig.dapp, cause=BY_USER)
    assert rig.create()["sessionScopes"]
