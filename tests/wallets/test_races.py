"""Concurrent operations: each one-time operation is executed once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import orjson
from django.db import transaction

from keys.models import User
from tests.support.threads import held_up, outcome
from tests.support.waiting import in_time
from tests.support.wallet import A1, A2, BY_USER, M0, Rig
from wallets import scopes
from wallets.changes import Cause, announce_dapp
from wallets.consents import get_consent
from wallets.errors import AlreadyPending, BlockedAsSpam
from wallets.models import Activity, Actor, ConsentRequest, Event, Session
from wallets.proposals import Choice
from wallets.scopes import ScopeObject
from wallets.services import accounts, consent, dapps, pairing, requests, sessions
from wallets.services.locks import lock_session
from wallets.serving.threads import in_thread

ONE = {"optionalScopes": {"eip155:1": M0}}
TIMES = 6


def at_once(rig: Rig, *calls: Callable[[], Any]) -> list[Any]:
    """Make calls in separate threads. Exceptions are returned."""

    async def gather() -> list[Any]:
        return await asyncio.gather(*map(in_thread, calls), return_exceptions=True)

    found: list[Any] = rig.run(gather())
    return found


def kinds(found: list[Any]) -> set[str]:
    return {type(value).__name__ for value in found}


def test_of_many_requests_one_is_made(rig: Rig):
    def ask(socket: str) -> ConsentRequest:
        return consent.request_session(
            dapp_id=rig.dapp.pk,
            wanted={"eip155:1": ScopeObject()},
            expires_at=None,
            cause=Cause(Actor.DAPP, None, socket),
        )

    found = at_once(rig, *[lambda n=n: ask(f"s{n}") for n in range(TIMES)])
    assert sum(isinstance(value, ConsentRequest) for value in found) == 1
    assert sum(isinstance(value, AlreadyPending) for value in found) == TIMES - 1
    assert rig.pending() in found


def test_of_many_approvals_one_counts(rig: Rig):
    task = rig.start(rig.s1, ONE)
    request = rig.pending()
    seen = get_consent(request)
    choice = Choice(frozenset(seen.asked), addresses=frozenset(seen.ticked))

    def approve() -> Session:
        return consent.approve_session(
            request_id=request.pk,
            user=rig.user,
            digest=seen.digest,
            choice=choice,
            cause=BY_USER,
        )

    found = at_once(rig, *[approve] * TIMES)
    assert kinds(found) == {"Session", "NotPending"}
    assert sum(isinstance(value, Session) for value in found) == 1
    assert "eip155:1" in rig.finish(task)["sessionScopes"]
    assert Session.objects.get(dapp=rig.dapp).version == 1
    granted = Activity.objects.filter(dapp=rig.dapp, event=Event.GRANTED)
    assert granted.count() == 1


def test_request_is_taken_back_by_a_socket_that_goes_before_the_event_arrives(rig: Rig):
    """A notification at that moment must not hide the end of the socket."""
    task = rig.start(rig.s1, ONE)
    request = rig.pending()
    rig.settle()

    async def go_when_something_is_heard() -> None:
        goes = partial(asyncio.get_running_loop().call_soon, task.cancel)
        unsubscribe = rig.wallet.watch.subscribe_dapp(rig.dapp, goes)
        await in_thread(announce_dapp, rig.dapp)
        await in_time(asyncio.wait([task]))
        unsubscribe()

    rig.run(go_when_something_is_heard())
    assert task.cancelled()
    request.refresh_from_db()
    assert request.state == "withdrawn"


def test_approval_and_rejection_exclude_each_other(rig: Rig):
    for _ in range(TIMES):
        task = rig.start(rig.s1, ONE)
        request = rig.pending()
        seen = get_consent(request)
        choice = Choice(frozenset(seen.asked), addresses=frozenset(seen.ticked))
        found = at_once(
            rig,
            lambda r=request, s=seen, c=choice: consent.approve_session(
                request_id=r.pk, user=rig.user, digest=s.digest, choice=c, cause=BY_USER
            ),
            lambda r=request: requests.reject_request(
                request_id=r.pk, user=rig.user, cause=BY_USER
            ),
        )
        assert sum(isinstance(value, requests.NotPending) for value in found) == 1
        answered = rig.finish(task)
        request.refresh_from_db()
        if request.state == "approved":
            assert rig.session() == answered
            rig.result(rig.s1, "wallet_revokeSession")
        else:
            assert answered.code == 4001
            assert rig.session()["sessionScopes"] == {}
        rig.dapp.refresh_from_db()
        rig.dapp.muted_until = None
        rig.dapp.save()


def test_removed_account_is_in_no_session_whichever_comes_first(rig: Rig):
    for _ in range(TIMES):
        wanted = {"eip155:1": {**M0, "accounts": [f"eip155:1:{a}" for a in (A1, A2)]}}
        task = rig.start(rig.s1, {"optionalScopes": wanted})
        request = rig.pending()
        seen = get_consent(request)
        choice = Choice(frozenset(seen.asked), addresses=frozenset(seen.own))
        gone = accounts.Account.objects.get(user=rig.user, address=A2)
        approved, removed = at_once(
            rig,
            lambda r=request, s=seen, c=choice: consent.approve_session(
                request_id=r.pk, user=rig.user, digest=s.digest, choice=c, cause=BY_USER
            ),
            lambda a=gone: accounts.remove_account(account=a, cause=BY_USER),
        )
        assert removed is None
        if isinstance(approved, sessions.Stale):
            rig.reject()
            assert rig.finish(task).code == 4001
        else:
            rig.finish(task)
        assert A2 not in str(rig.session())
        rig.result(rig.s1, "wallet_revokeSession")
        rig.dapp.refresh_from_db()
        rig.dapp.muted_until = None
        rig.dapp.save()
        accounts.add_account(user=rig.user, address=A2, cause=BY_USER)


def test_revocations_at_once_are_one_revocation(rig: Rig):
    rig.create()
    revoke = Cause(Actor.DAPP, None, "s1")
    found = at_once(
        rig,
        *[lambda: sessions.revoke_session(dapp_id=rig.dapp.pk, cause=revoke)] * TIMES,
    )
    assert kinds(found) == {"Session"}
    assert Session.objects.get(dapp=rig.dapp).version == 2
    assert Activity.objects.filter(dapp=rig.dapp, event=Event.REVOKED).count() == 1


def test_expired_sessions_are_ended_once(rig: Rig):
    rig.create()
    row = Session.objects.get(dapp=rig.dapp)
    row.expires_at = row.changed_at
    row.save()
    at_once(rig, *[sessions.end_expired_sessions] * TIMES)
    rig.settle()
    ended = Session.objects.get(dapp=rig.dapp)
    assert (ended.version, ended.stored_scopes, ended.expires_at) == (2, [], None)


def test_code_makes_one_token(rig: Rig):
    code = pairing.start_program_pairing(user=rig.user, label="bot")
    found = at_once(
        rig,
        *[lambda: pairing.redeem_program_code(code=code, cause=BY_USER)] * TIMES,
    )
    assert sum(isinstance(value, pairing.IssuedToken) for value in found) == 1
    assert kinds(found) == {"IssuedToken", "PairingRefused"}
    pairing.FailedPairing.objects.all().delete()


def test_guesses_at_once_are_counted_like_others(rig: Rig):
    caller = Cause(Actor.DAPP, "198.51.100.1")
    at_once(
        rig,
        *[lambda: pairing.redeem_program_code(code="BBBBBBBB", cause=caller)] * 12,
    )
    failed = pairing.FailedPairing.objects.filter(remote_address="198.51.100.1")
    assert failed.count() == pairing.MAX_GUESSES
    failed.delete()


def test_edits_at_once_of_the_same_page_are_one_edit(rig: Rig):
    rig.create("eip155:1", "eip155:137")
    own = frozenset({rig.account1.named})

    def edit(name: str) -> Session:
        choice = Choice(frozenset({name}), addresses=own)
        return sessions.edit_session(
            dapp=rig.dapp, choice=choice, version=1, cause=BY_USER
        )

    found = at_once(rig, lambda: edit("eip155:1"), lambda: edit("eip155:137"))
    assert kinds(found) == {"Session", "Stale"}
    row = Session.objects.get(dapp=rig.dapp)
    assert row.version == 2
    shown = orjson.dumps(scopes.to_json(row.scopes))
    assert orjson.loads(shown) == rig.session()["sessionScopes"]


def wish(rig: Rig) -> ConsentRequest:
    """Request a session, as a socket of the dapp does."""
    return consent.request_session(
        dapp_id=rig.dapp.pk,
        wanted={"eip155:1": ScopeObject()},
        expires_at=None,
        cause=Cause(Actor.DAPP, None, "s1"),
    )


def test_password_is_changed_while_a_dapp_asks(rig: Rig):
    def change() -> None:
        user = User.objects.get(pk=rig.user.pk)
        user.set_password("another long pass phrase")
        user.save()

    with transaction.atomic():
        lock_session(rig.dapp.pk)
        changing = held_up(change)
        request = wish(rig)
    assert outcome(changing) is None
    request.refresh_from_db()
    assert request.state == "withdrawn"
    assert User.objects.get(pk=rig.user.pk).check_password("another long pass phrase")


def test_dapp_that_is_being_blocked_asks_nothing_more(rig: Rig):
    with transaction.atomic():
        lock_session(rig.dapp.pk)
        asking = held_up(lambda: wish(rig))
        dapps.block_dapp(dapp=rig.dapp, cause=BY_USER)
    assert isinstance(outcome(asking), BlockedAsSpam)


def test_account_is_removed_once(rig: Rig):
    gone = [accounts.Account.objects.get(pk=rig.account2.pk) for _ in range(TIMES)]
    at_once(
        rig,
        *[lambda a=a: accounts.remove_account(account=a, cause=BY_USER) for a in gone],
    )
    removed = Activity.objects.filter(user=rig.user, event=Event.ACCOUNT_REMOVED)
    assert removed.count() == 1
