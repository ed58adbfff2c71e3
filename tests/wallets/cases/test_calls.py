"""Cases 94–113: wallet_invokeMethod."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from keys.models import UsageBucket
from tests.support.coroutines import scenario
from tests.support.dapps import Owner, case, failure, orm, sockets_apart
from tests.support.waiting import until
from tests.support.wallet import UNAUTHORIZED
from wallets import internal_key

METHOD = "wallet_invokeMethod"
CHAIN_ID = {"method": "eth_chainId"}
PLAIN = {"scope": "eip155:1", "request": CHAIN_ID}


@pytest.mark.case(94)
@scenario
async def test_without_a_session_nothing_is_authorised(owner: Owner) -> None:
    async with await owner.connect() as s1:
        error = await failure(s1.call(METHOD, PLAIN))
        assert (error.code, error.message) == UNAUTHORIZED


@pytest.mark.parametrize(
    ("params", "param", "path"),
    [
        case(95, ["x"], "", ""),
        case(95, None, "", ""),
        case(95, "x", "", ""),
        case(96, {"request": CHAIN_ID}, "scope", ""),
        case(96, {"scope": 5, "request": CHAIN_ID}, "scope", ""),
        case(96, {"scope": None, "request": CHAIN_ID}, "scope", ""),
        case(97, {"scope": "eip155:1"}, "request", ""),
        case(97, {"scope": "eip155:1", "request": "x"}, "request", ""),
        case(98, {"scope": "eip155:1", "request": {"method": {}}}, "request", "method"),
        case(98, {"scope": "eip155:1", "request": {}}, "request", "method"),
        case(98, {"scope": "eip155:1", "request": {"method": ""}}, "request", "method"),
        case(
            98,
            {"scope": "eip155:1", "request": {**CHAIN_ID, "params": 5}},
            *("request", "params"),
        ),
        case(99, {"scope": "foo bar", "request": CHAIN_ID}, "scope", ""),
        case(99, {"scope": "eip155:1\n", "request": CHAIN_ID}, "scope", ""),
    ],
)
@scenario
async def test_wrong_types_are_refused_and_named(
    owner: Owner, params: Any, param: str, path: str
) -> None:
    async with await owner.connect() as s1:
        await owner.create(s1)
        error = await failure(s1.call(METHOD, params))
        assert error.code == -32602
        (fault,) = error.data
        assert (fault["param"], fault["path"]) == (param, path)


@pytest.mark.parametrize(
    ("scope", "method"),
    [
        case(100, "eip155", "eth_chainId"),
        case(101, "eip155:999", "eth_chainId"),
        case(107, "eip155:1", "eth_accounts"),
        case(107, "eip155:1", "eth_requestAccounts"),
        case(107, "eip155:1", "wallet_switchEthereumChain"),
        case(107, "eip155:1", "net_listening"),
    ],
)
@scenario
async def test_whatever_is_not_in_the_session_is_refused_alike(
    owner: Owner, scope: str, method: str
) -> None:
    async with await owner.connect() as s1:
        await owner.create(s1)
        error = await failure(s1.invoke(scope, method))
        assert (error.code, error.message, error.data) == (*UNAUTHORIZED, None)


@pytest.mark.case(102)
@scenario
async def test_method_that_was_not_granted_does_not_reach_the_node(
    owner: Owner,
) -> None:
    """Every call that reaches the node is counted for the wallet's key."""
    only = {"methods": ["web3_clientVersion"], "notifications": []}
    async with await owner.connect() as s1:
        await owner.granted(s1, {"optionalScopes": {"eip155:1": only}})
        error = await failure(s1.invoke("eip155:1", "eth_syncing"))
        assert (error.code, error.message) == UNAUTHORIZED
        assert await s1.invoke("eip155:1", "web3_clientVersion")
    booked = UsageBucket.objects.filter(api_key=await orm(internal_key.find))
    await until(lambda: orm(booked.filter(method="web3_clientVersion").exists))
    assert not await orm(booked.filter(method="eth_syncing").exists)


@pytest.mark.case(103)
@scenario
async def test_result_is_the_inner_methods_own(owner: Owner) -> None:
    async with await owner.connect() as s1:
        await owner.create(s1, "eip155:1337")
        assert await s1.invoke("eip155:1337", "eth_chainId") == "0x539"


@pytest.mark.parametrize("more", [{}, {"params": []}, {"params": {}}, {"params": None}])
@pytest.mark.case(104)
@scenario
async def test_parameters_may_be_left_out(owner: Owner, more: dict[str, Any]) -> None:
    async with await owner.connect() as s1:
        await owner.create(s1)
        params = {"scope": "eip155:1", "request": {**CHAIN_ID, **more}}
        assert await s1.call(METHOD, params) == "0x1"


@pytest.mark.case(105)
@scenario
async def test_chains_are_asked_side_by_side(owner: Owner) -> None:
    chains = {"eip155:1": "0x1", "eip155:137": "0x89"}
    async with await owner.connect() as s1:
        await owner.create(s1, *chains)
        asked = list(chains) * 10
        calls = [s1.invoke(scope, "eth_chainId") for scope in asked]
        assert await asyncio.gather(*calls) == [chains[scope] for scope in asked]


@pytest.mark.case(106)
@scenario
async def test_errors_of_the_node_are_the_answers_own(owner: Owner) -> None:
    async with await owner.connect() as s1:
        await owner.create(s1)
        error = await failure(s1.invoke("eip155:1", "eth_getStorageAt", "0x1", "0x0"))
        assert error.code == -32602
        assert "common.Address" in error.message  # the error text is the node's


@pytest.mark.case(111)
@scenario
async def test_after_a_revocation_every_scope_is_closed_in_every_process(
    owner: Owner,
) -> None:
    async with sockets_apart(owner) as (s1, s2):
        await owner.create(s1, "eip155:1", "eip155:137")
        await orm(owner.revoke)
        for socket in (s1, s2):
            for scope in ("eip155:1", "eip155:137"):
                error = await failure(socket.invoke(scope, "eth_chainId"))
                assert (error.code, error.message) == UNAUTHORIZED


@pytest.mark.case(113)
@scenario
async def test_session_id_is_ignored(owner: Owner) -> None:
    async with await owner.connect() as s1:
        await owner.create(s1)
        assert await s1.call(METHOD, {**PLAIN, "sessionId": "0xdead"}) == "0x1"
