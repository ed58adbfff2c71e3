"""Changes and ends of sessions by dapp, user and expiry."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from threading import Event as Signal

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from networks.models import Network
from tests.support.waiting import in_time, until
from tests.support.wallet import A1, A2, BY_USER, M0, Rig, Socket
from wallets import internal_key
from wallets.caip import Address
from wallets.changes import Cause
from wallets.models import Activity, Actor, Event, Session
from wallets.offers import kept_scopes
from wallets.permissions import Group
from wallets.proposals import Choice, NothingChosen
from wallets.services import accounts, dapps, sessions
from wallets.serving import wallet as serving
from wallets.serving.store import SessionState

NO_SESSION = {"sessionScopes": {}, "sessionProperties": {}}

LOOK = "look"
"""Name of the tasks that read a session after a notification."""


@pytest.fixture
def heard(rig: Rig) -> Iterator[list[SessionState]]:
    """Return the list of session states that are read after notifications."""
    states: list[SessionState] = []
    tasks = []

    async def look() -> None:
        states.append(await rig.wallet.store.session(rig.dapp.pk))

    def changed() -> None:
        tasks.append(rig.runner.get_loop().create_task(look(), name=LOOK))

    unsubscribe = rig.wallet.watch.subscribe_dapp(rig.dapp, changed)
    settle(rig)
    states.clear()  # a new subscriber is called once
    yield states
    unsubscribe()


def settle(rig: Rig) -> None:
    """Wait until committed changes have been reported and processed."""
    rig.settle()

    async def finish() -> None:
        looks = (task for task in asyncio.all_tasks() if task.get_name() == LOOK)
        await asyncio.gather(rig.wallet.node.directory.refresh(), *looks)

    rig.run(finish())


def edit(rig: Rig, names: set[str], ticked: set[str] | None = None, **more: object):
    own = {Address("eip155", address) for address in (ticked or {A1})}
    row = Session.objects.get(dapp=rig.dapp)
    return sessions.edit_session(
        dapp=rig.dapp,
        choice=Choice(frozenset(names), addresses=frozenset(own), **more),
        version=row.version,
        cause=BY_USER,
    )


@pytest.mark.parametrize("method", ["wallet_getSession", "wallet_revokeSession"])
def test_parameters_that_are_no_container_are_refused(rig: Rig, method):
    assert rig.code(rig.s1, method, "x") == -32602


@pytest.mark.parametrize("names", ["eip155:1", None, {}, [1], ["eip155:1", None]])
def test_scopes_that_are_no_list_of_strings_are_refused(rig: Rig, names):
    created = rig.create()
    error = rig.error(rig.s1, "wallet_revokeSession", {"scopes": names})
    assert (error.code, error.data[0]["param"]) == (-32602, "scopes")
    assert rig.session() == created


@pytest.mark.parametrize("params", [{}, [], None, {"scopes": []}])
def test_dapp_ends_its_session(rig: Rig, heard, params):
    rig.create()
    settle(rig)
    heard.clear()
    answered = rig.answer(rig.s1, "wallet_revokeSession", params)
    assert answered.result == b"true"
    assert answered.session == SessionState(2, {}, "s1", None)
    assert rig.session(rig.s1) == rig.session(rig.s2) == NO_SESSION
    settle(rig)
    assert heard[-1] == answered.session
    log = Activity.objects.filter(dapp=rig.dapp).latest("id")
    assert (log.event, log.actor, log.details) == (
        Event.REVOKED,
        Actor.DAPP,
        {"removed": ["eip155:1"]},
    )


def test_giving_back_what_was_not_granted_ends_nothing_and_withdraws_nothing(rig: Rig):
    other = Socket(rig.pair("https://q.example"), "q")
    created = rig.create("wallet", socket=other)
    rig.result(other, "wallet_revokeSession", {"scopes": ["eip155:1"]})
    assert rig.session(other) == created
    task = rig.start(rig.s1, {"optionalScopes": {"eip155:1": M0}})
    rig.result(rig.s2, "wallet_revokeSession", {"scopes": ["eip155:1"]})
    rig.approve()
    assert rig.finish(task)["sessionScopes"]


def test_giving_all_back_withdraws_what_was_asked_for(rig: Rig):
    task = rig.start(rig.s1, {"optionalScopes": {"eip155:1": M0}})
    rig.result(rig.s2, "wallet_revokeSession")
    assert rig.finish(task).code == 4001


def test_user_adds_a_network_and_an_account(rig: Rig):
    rig.create(groups=frozenset({Group.READ}))
    groups = frozenset({Group.READ})
    edit(rig, {"eip155:1", "eip155:137"}, {A1, A2}, groups=groups)
    found = rig.session()["sessionScopes"]
    assert found["eip155:137"]["accounts"] == [f"eip155:137:{A1}", f"eip155:137:{A2}"]
    assert "eth_chainId" in found["eip155:137"]["methods"]
    assert "eth_subscribe" not in found["eip155:137"]["methods"]


def test_user_takes_a_permission_away_and_gives_it_again(rig: Rig):
    wanted = {"eip155:1": {**M0, "methods": ["eth_chainId", "eth_subscribe"]}}
    task = rig.start(rig.s1, {"optionalScopes": wanted})
    rig.approve()
    rig.finish(task)
    edit(rig, {"eip155:1"}, groups=frozenset({Group.READ}))
    found = rig.session()["sessionScopes"]["eip155:1"]
    assert (found["methods"], found["notifications"]) == (["eth_chainId"], [])
    edit(rig, {"eip155:1"})
    found = rig.session()["sessionScopes"]["eip155:1"]
    assert found["methods"] == [
        *("eth_subscribe", "eth_unsubscribe", "eth_chainId", "eth_sendRawTransaction")
    ]
    assert found["notifications"] == ["eth_subscription"]


@pytest.mark.parametrize("names", [set(), {"wallet"}])
def test_session_that_user_leaves_nothing_of_is_over(rig: Rig, names):
    rig.create("eip155:1", "wallet")
    edit(rig, names)
    assert rig.session() == NO_SESSION
    last = Activity.objects.filter(dapp=rig.dapp).latest("id")
    assert (last.event, last.actor) == (Event.REVOKED, Actor.USER)


def test_edit_of_an_old_page_is_refused(rig: Rig):
    created = rig.create()
    choice = Choice(
        frozenset({"eip155:137"}), addresses=frozenset({rig.account1.named})
    )
    with pytest.raises(sessions.Stale):
        sessions.edit_session(dapp=rig.dapp, choice=choice, version=0, cause=BY_USER)
    assert rig.session() == created


@pytest.mark.parametrize(
    ("names", "ticked"), [({"eip155:999"}, {A1}), ({"eip155:1"}, {"0x" + "9" * 40})]
)
def test_edit_to_what_is_not_on_offer_is_refused(rig: Rig, names, ticked):
    created = rig.create()
    with pytest.raises(NothingChosen):
        edit(rig, names, ticked)
    assert rig.session() == created


def test_edit_without_a_session_is_refused(rig: Rig):
    with pytest.raises(sessions.Stale):
        edit(rig, {"eip155:1"})
    assert rig.session() == NO_SESSION


def test_primary_account_comes_first_in_every_session(rig: Rig, heard):
    rig.create("eip155:1", "wallet:eip155", accounts={A1, A2})
    other = Socket(rig.pair("https://q.example"), "q")
    rig.create(socket=other)
    accounts.move_account(account=rig.account2, position=0, cause=BY_USER)
    for name, scope in rig.session()["sessionScopes"].items():
        assert scope["accounts"] == [f"{name}:{A2}", f"{name}:{A1}"]
    assert rig.session(other)["sessionScopes"]["eip155:1"]["accounts"] == [
        f"eip155:1:{A1}"
    ]
    settle(rig)
    assert heard[-1].version == 2
    assert Session.objects.get(dapp_id=other.dapp_id).version == 1


def test_account_leaves_every_session_with_the_wallet(rig: Rig):
    rig.create("eip155:1", "eip155:137", accounts={A1, A2})
    other = Socket(rig.pair("https://q.example"), "q")
    rig.create(socket=other)
    accounts.remove_account(account=rig.account1, cause=BY_USER)
    for name, scope in rig.session()["sessionScopes"].items():
        assert scope["accounts"] == [f"{name}:{A2}"]
    assert rig.session(other) == NO_SESSION


def test_session_of_the_wallet_alone_has_no_accounts_to_lose(rig: Rig):
    created = rig.create("wallet")
    assert list(created["sessionScopes"]) == ["wallet"]
    accounts.remove_account(account=rig.account1, cause=BY_USER)
    assert rig.session() == created


def test_round_that_has_begun_is_waited_for_at_the_end(rig: Rig, monkeypatch):
    """Cancelling a task does not end the thread that it waits for."""
    begun, ended = Signal(), Signal()

    def slow() -> None:
        begun.set()
        time.sleep(0.3)
        ended.set()

    monkeypatch.setattr(serving, "end_expired_sessions", slow)
    wallet = replace(rig.wallet, _sweep=None, _round=asyncio.Lock())

    async def come_and_go() -> None:
        await rig.wallet.stop()  # its rounds would count as those of the other one
        await wallet.start()
        await until(begun.is_set)
        await wallet.stop()
        assert ended.is_set()
        await rig.wallet.start()

    rig.run(come_and_go())


def test_chain_that_staff_take_from_the_wallet_leaves_every_session(rig: Rig, heard):
    rig.create("eip155:1", "eip155:137")
    other = Socket(rig.pair("https://y.example"), "y")
    api_key = internal_key.ensure()

    async def shrunk() -> None:
        await until(lambda: any(list(s.scopes) == ["eip155:137"] for s in heard))

    try:
        api_key.networks.set(Network.objects.filter(chain_id=137))
        rig.run(in_time(shrunk()))
    finally:
        api_key.networks.clear()
    line = Activity.objects.filter(dapp=rig.dapp).latest("id")
    assert (line.event, line.actor) == (Event.CHANGED, Actor.SYSTEM)
    assert line.details == {"removed": ["eip155:1"]}
    assert rig.session(other) == NO_SESSION
    sessions.withdraw_chains(kept_scopes())  # the chain is served again
    assert list(rig.session()["sessionScopes"]) == ["eip155:137"]


def test_sessions_are_looked_at_some_at_a_time(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "LOOKED_AT_ONCE", 2)
    rig.create("eip155:1", "eip155:137")
    granted = Session.objects.get(dapp=rig.dapp).stored_scopes
    dapps = [rig.pair(f"https://{number}.example") for number in range(5)]
    Session.objects.filter(dapp__in=dapps).update(stored_scopes=granted)
    with CaptureQueriesContext(connection) as queries:
        sessions.withdraw_chains(["eip155:137"])
    found = Session.objects.filter(dapp__in=dapps)
    assert [list(session.scopes) for session in found] == [["eip155:137"]] * 5
    read = [q["sql"] for q in queries if 'ORDER BY "wallets_session"."id"' in q["sql"]]
    assert len(read) > 2
    assert all(sql.endswith("LIMIT 2") for sql in read)


def test_chain_that_is_imported_anew_stays_in_sessions(rig: Rig):
    rig.create("eip155:1")
    network = Network.objects.filter(chain_id=1)
    (head,) = network.values_list("head_number", flat=True)
    try:
        network.update(head_number=None)
        sessions.withdraw_chains(kept_scopes())
    finally:
        network.update(head_number=head)
    assert list(rig.session()["sessionScopes"]) == ["eip155:1"]


def test_session_expires_for_reads_at_once_and_for_listeners_soon(rig: Rig, heard):
    moment = (timezone.now() + timedelta(seconds=1.2)).replace(microsecond=0)
    moment += timedelta(seconds=1)
    params = {
        "optionalScopes": {"eip155:1": M0},
        "sessionProperties": {"expiry": moment.isoformat()},
    }
    task = rig.start(rig.s1, params)
    rig.approve()
    expiry = f"{moment:%Y-%m-%dT%H:%M:%SZ}"
    assert rig.finish(task)["sessionProperties"] == {"expiry": expiry}

    rig.run(until(lambda: heard and heard[-1].version == 2))
    assert rig.session() == NO_SESSION
    assert heard[-1].scopes == {}
    last = Activity.objects.filter(dapp=rig.dapp).latest("id")
    assert (last.event, last.actor) == (Event.SESSION_EXPIRED, Actor.SYSTEM)
    assert Session.objects.get(dapp=rig.dapp).stored_scopes == []


def test_expired_session_is_not_returned_before_it_is_ended(rig: Rig):
    rig.create()
    row = Session.objects.get(dapp=rig.dapp)
    long_ago = timezone.now() - timedelta(seconds=5)
    Session.objects.filter(pk=row.pk).update(expires_at=long_ago)
    assert Session.objects.get(pk=row.pk).scopes == {}
    assert rig.session() == NO_SESSION
    assert rig.code(
        rig.s1, "wallet_invokeMethod", rig.invoke("eip155:1", "eth_chainId")
    )


def test_disconnected_dapps_have_neither_session_nor_tokens(rig: Rig):
    rig.create()
    other = Socket(rig.pair("https://q.example"), "q")
    rig.create(socket=other)
    dapps.disconnect_all(user=rig.user, cause=BY_USER)
    assert rig.session() == rig.session(other) == NO_SESSION


def test_change_that_is_rolled_back_is_neither_logged_nor_announced(rig: Rig, heard):
    created = rig.create()
    settle(rig)
    heard.clear()
    before = Activity.objects.filter(dapp=rig.dapp).count()
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        sessions.revoke_session(dapp_id=rig.dapp.pk, cause=Cause(Actor.USER))
        raise ZeroDivisionError
    settle(rig)
    assert heard == []
    assert rig.session() == created
    assert Activity.objects.filter(dapp=rig.dapp).count() == before
