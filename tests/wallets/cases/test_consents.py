"""Cases 64–93: the user's decisions, and the events that the dapp's sockets receive."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.support.coroutines import scenario
from tests.support.dapps import (
    Owner,
    case,
    failure,
    next_event,
    nothing_comes,
    orm,
    page_token,
    sockets_apart,
)
from tests.support.live import Live
from tests.support.waiting import until
from tests.support.wallet import A1, A2, BY_USER, M0
from wallets.caip import parse_account_id
from wallets.client import WalletClient
from wallets.models import Account, Activity, Event
from wallets.services.accounts import move_account

EMPTY = {"sessionScopes": {}, "sessionProperties": {}}
ONE = {"optionalScopes": {"eip155:1": M0}}


def asking(*names: str, accounts: Any = ()) -> dict[str, Any]:
    """Return parameters that request scopes, and accounts in the first one."""
    wanted = {name: dict(M0) for name in names}
    wanted[names[0]]["accounts"] = list(accounts)
    return {"optionalScopes": wanted}


def accounts_of(session: Any) -> dict[str, list[str]]:
    return {name: scope["accounts"] for name, scope in session["sessionScopes"].items()}


async def told(*clients: WalletClient) -> Any:
    """Return the scopes in the clients' next `wallet_sessionChanged` events."""
    events = [await next_event(client) for client in clients]
    for event in events:
        assert set(event) == {"jsonrpc", "method", "params"}
        assert (event["jsonrpc"], event["method"]) == ("2.0", "wallet_sessionChanged")
        assert event == events[0]
    return events[0]["params"]["sessionScopes"]


# Accounts


@pytest.mark.parametrize(
    ("accounts", "expected"),
    [
        case(64, [], A1),
        case(65, [f"eip155:1:0x{A2[2:].upper()}"], A2),
        case(66, ["eip155:1:0x" + "9" * 40], A1),
        case(67, [f"eip155:0:{A2}"], A2),
        case(68, [f"eip155:137:{A2}"], A2),
        case(69, ["garbage"], A1),
        case(69, [f"{A2}@eip155:1"], A1),
    ],
)
@scenario
async def test_account_that_is_wished_for_is_ticked_on_all_chains(
    owner: Owner, accounts: list[str], expected: str
) -> None:
    async with await owner.connect() as s1:
        params = asking("eip155:1", "eip155:137", accounts=accounts)
        found = await owner.granted(s1, params)
    assert accounts_of(found) == {
        "eip155:1": [f"eip155:1:{expected}"],
        "eip155:137": [f"eip155:137:{expected}"],
    }


@pytest.mark.case(70, 72)
@scenario
async def test_accounts_are_the_same_on_all_chains_the_primary_one_first(
    owner: Owner,
) -> None:
    async with sockets_apart(owner) as (s1, s2):
        params = asking("eip155:137", "eip155:1", "wallet:eip155")
        created = await owner.granted(s1, params, addresses={A2, A1})
        # A socket gets no event of a change that its own response reports.
        event = {"sessionScopes": await told(s2)}
        answers = [created, event, await s2.call("wallet_getSession")]
    for answer in answers:
        assert set(accounts_of(answer)) == {"eip155:1", "eip155:137", "wallet:eip155"}
        for name, accounts in accounts_of(answer).items():
            assert accounts == [f"{name}:{A1}", f"{name}:{A2}"]
            for account in accounts:
                assert str(parse_account_id(account).chain_id) == name


# Consent


@pytest.mark.case(73)
@scenario
async def test_rejection_is_reported_and_leaves_nothing(owner: Owner) -> None:
    async with await owner.connect() as s1:
        call = await owner.asking(s1, ONE)
        await orm(owner.reject)
        error = await failure(call)
        assert (error.code, error.message) == (4001, "User rejected the request.")
        assert await s1.call("wallet_getSession") == EMPTY
    log = Activity.objects.filter(dapp=owner.dapp).order_by("id")
    assert await orm(lambda: list(log.values_list("event", flat=True))) == [
        *(Event.PAIRED, Event.ASKED, Event.REJECTED)
    ]


@pytest.mark.case(75)
@scenario
async def test_dapp_asks_one_thing_at_a_time_over_all_its_sockets(owner: Owner) -> None:
    async with sockets_apart(owner) as (s1, s2):
        first = await owner.asking(s1, ONE)
        for socket in (s1, s2):
            second = socket.call("wallet_createSession", asking("eip155:137"))
            error = await failure(second)
            assert error.code == -32002
            assert error.message == (
                "Request of type 'wallet_createSession' already pending for origin "
                "bot. Please wait."
            )
        await orm(owner.approve)
        assert list((await first)["sessionScopes"]) == ["eip155:1"]


@pytest.mark.case(76)
@scenario
async def test_another_dapp_can_create_a_request_at_the_same_time(owner: Owner) -> None:
    token = await orm(owner.new_token, "Q")
    async with await owner.connect() as s1, await owner.connect(token=token) as q:
        first = await owner.asking(s1, ONE)
        second = asyncio.create_task(q.call("wallet_createSession", ONE))
        q_dapp = await orm(owner.user.wallet_dapps.get, label="Q")
        await until(lambda: orm(q_dapp.requests.pending().exists))
        await orm(owner.approve, dapp=q_dapp)
        assert list((await second)["sessionScopes"]) == ["eip155:1"]
        await orm(owner.reject)
        assert (await failure(first)).code == 4001


@pytest.mark.case(77)
@scenario
async def test_network_that_is_unticked_is_not_granted(owner: Owner) -> None:
    async with await owner.connect() as s1:
        found = await owner.granted(s1, asking("eip155:1", "eip155:137"), "eip155:1")
    assert list(found["sessionScopes"]) == ["eip155:1"]


@pytest.mark.case(78)
@scenario
async def test_second_session_is_added_to_the_first(owner: Owner) -> None:
    async with await owner.connect() as s1:
        await owner.granted(s1, asking("eip155:1", "eip155:1337"))
        more = asking("eip155:137", accounts=[f"eip155:137:{A2}"])
        found = await owner.granted(s1, more)
    assert accounts_of(found) == {
        name: [f"{name}:{A1}", f"{name}:{A2}"]
        for name in ("eip155:1", "eip155:1337", "eip155:137")
    }


@pytest.mark.case(79)
@scenario
async def test_rejection_of_more_leaves_what_there_is(owner: Owner) -> None:
    async with sockets_apart(owner) as (s1, s2):
        created = await owner.granted(s1, asking("eip155:1", "eip155:1337"))
        assert await told(s2) == created["sessionScopes"]
        more = asking("eip155:137", accounts=[f"eip155:137:{A2}"])
        call = await owner.asking(s1, more)
        await orm(owner.reject)
        assert (await failure(call)).code == 4001
        for socket in (s1, s2):
            await nothing_comes(socket, 0.2)
            assert await socket.call("wallet_getSession") == created


@pytest.mark.case(80)
@scenario
async def test_same_session_again_is_asked_for_again_and_no_event_is_sent(
    owner: Owner,
) -> None:
    async with sockets_apart(owner) as (s1, s2):
        created = await owner.granted(s1, ONE)
        await told(s2)
        assert await owner.granted(s1, ONE) == created  # not without a request
        for socket in (s1, s2):
            await nothing_comes(socket, 0.2)


@pytest.mark.case(81)
@scenario
async def test_session_is_the_same_on_all_sockets_and_after_a_reconnect(
    owner: Owner,
) -> None:
    async with sockets_apart(owner) as (s1, s2):
        created = await owner.granted(s1, asking("eip155:1", "eip155:137"))
        for socket in (s1, s2):
            assert await socket.call("wallet_getSession") == created
    async with await owner.connect() as again:
        assert await again.call("wallet_getSession") == created


@pytest.mark.case(82)
@scenario
async def test_session_is_no_other_dapps_and_no_other_users(
    live: Live, owner: Owner
) -> None:
    page, v = "https://p.example", await orm(Owner, live.base_url)
    options: Any = {"origin": page, "in_subprotocol": True}
    mine = await orm(page_token, owner.user, page)
    theirs = await orm(page_token, v.user, page)
    async with (
        await owner.connect(token=mine, **options) as p_of_u,
        await owner.connect(token=theirs, **options) as p_of_v,
        await owner.connect() as q,
    ):
        created = await owner.granted(p_of_u, ONE)
        assert created["sessionScopes"]
        for other in (p_of_v, q):
            assert await other.call("wallet_getSession") == EMPTY
            await nothing_comes(other, 0.1)


# Changes by the dapp


@pytest.mark.case(83)
@scenario
async def test_revocation_is_reported_to_the_other_socket(owner: Owner) -> None:
    async with sockets_apart(owner) as (s1, s2):
        await owner.granted(s1, ONE)
        await told(s2)
        assert await s1.call("wallet_revokeSession") is True
        assert await told(s2) == {}
        for socket in (s1, s2):
            assert await socket.call("wallet_getSession") == EMPTY


@pytest.mark.parametrize(
    ("names", "revoked", "left"),
    [
        case(84, ["eip155:1", "eip155:137"], ["eip155:1"], ["eip155:137"]),
        case(85, ["wallet", "eip155:1", "eip155:137"], ["eip155:1", "eip155:137"], []),
        case(86, ["eip155:1"], ["eip155:999"], ["eip155:1"]),
        case(87, ["eip155:1"], [], []),
    ],
)
@scenario
async def test_scopes_that_are_revoked(
    owner: Owner, names: list[str], revoked: list[str], left: list[str]
) -> None:
    async with sockets_apart(owner) as (s1, s2):
        await owner.granted(s1, asking(*names))
        await told(s2)
        assert await s1.call("wallet_revokeSession", {"scopes": revoked}) is True
        if left != names:
            assert list(await told(s2)) == left
        for socket in (s1, s2):
            await nothing_comes(socket, 0.2)
            session = await socket.call("wallet_getSession")
            assert list(session["sessionScopes"]) == left


# Changes by the user in the wallet


@pytest.mark.case(88, 93)
@scenario
async def test_network_that_is_taken_away_is_reported_to_all(owner: Owner) -> None:
    async with sockets_apart(owner) as (s1, s2):
        created = await owner.granted(s1, asking("eip155:1", "eip155:137"))
        await told(s2)
        await orm(owner.edit, "eip155:137")
        left = {"eip155:137": created["sessionScopes"]["eip155:137"]}
        assert await told(s1, s2) == left


@pytest.mark.parametrize("names", [(), ("eip155:1",)])
@pytest.mark.case(89)
@scenario
async def test_session_without_networks_or_accounts_is_over(
    owner: Owner, names: tuple[str, ...]
) -> None:
    async with sockets_apart(owner) as (s1, s2):
        await owner.granted(s1, ONE)
        await told(s2)
        await orm(owner.edit, *names, addresses=[] if names else [A1])
        assert await told(s1, s2) == {}
        assert await s1.call("wallet_getSession") == EMPTY


@pytest.mark.case(90)
@scenario
async def test_no_event_is_sent_when_nothing_has_changed(owner: Owner) -> None:
    async with sockets_apart(owner) as (s1, s2):
        await owner.granted(s1, ONE)
        await told(s2)
        await orm(owner.edit, "eip155:1")
        for socket in (s1, s2):
            await nothing_comes(socket)


@pytest.mark.case(91)
@scenario
async def test_other_primary_account_is_reported_as_the_first(owner: Owner) -> None:
    async with sockets_apart(owner) as (s1, s2):
        await owner.granted(s1, ONE, addresses=[A1, A2])
        await told(s2)
        account = await orm(Account.objects.get, user=owner.user, address=A2)
        await orm(move_account, account=account, position=0, cause=BY_USER)
        scopes = await told(s1, s2)
        assert scopes["eip155:1"]["accounts"] == [f"eip155:1:{A2}", f"eip155:1:{A1}"]


@pytest.mark.case(92)
@scenario
async def test_what_was_missed_is_not_reported_again(owner: Owner) -> None:
    async with await owner.connect() as s1:
        await owner.granted(s1, asking("eip155:1", "eip155:137"))
    await orm(owner.edit, "eip155:137")
    async with await owner.connect() as again:
        await nothing_comes(again)
        session = await again.call("wallet_getSession")
        assert list(session["sessionScopes"]) == ["eip155:137"]
