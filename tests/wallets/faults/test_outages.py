"""Redis, PostgreSQL and a web process stop, and start again."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator

import pytest
from django.db import connections
from django.db.models import QuerySet
from websockets.exceptions import InvalidStatus

from config.embedded.postgres import PostgresServer
from config.variables import processes
from tests.support.coroutines import run
from tests.support.dapps import (
    Owner,
    failure,
    next_event,
    nothing_comes,
    orm,
    sockets_apart,
)
from tests.support.growing import GrowingChain, next_head, subscribed
from tests.support.live import live_service
from tests.support.redis_server import own_redis
from tests.support.waiting import until
from tests.support.wallet import A1, A2, M0, served_chains
from wallets import internal_key
from wallets.client import CallFailed, Disconnected, WalletClient
from wallets.models import ConsentRequest, RequestState

pytestmark = pytest.mark.django_db(transaction=True)

MORE = {"optionalScopes": {"eip155:137": M0}}


@pytest.fixture
def chain(transactional_db: None) -> GrowingChain:
    served_chains()
    internal_key.ensure()
    return GrowingChain(7)


@pytest.fixture
def database() -> Iterator[PostgresServer]:
    """Return the server of the test database, which is started again after the test."""
    if os.environ.get("DATABASE_URL"):
        pytest.skip("the database is not ours to stop")
    server = PostgresServer(processes.var_dir())
    try:
        yield server
    finally:
        server.start()


async def all_works(
    owner: Owner, chain: GrowingChain, clients: dict[WalletClient, str]
) -> None:
    """Check that heads and changes reach all sockets, and that calls are answered."""
    expected = await chain.grow()
    for client, name in clients.items():
        assert await next_head(client) == (chain.scope, name, expected)
        assert await client.invoke(chain.scope, "eth_chainId") == "0x7"
    for addresses in ([A1, A2], [A1]):
        await orm(owner.edit, chain.scope, addresses=addresses)
        for client in clients:
            event = await next_event(client)
            (scope,) = event["params"]["sessionScopes"].values()
            assert len(scope["accounts"]) == len(addresses)


def test_without_redis_dapps_notice_nothing(chain: GrowingChain) -> None:
    async def scenario(owner: Owner) -> None:
        async with sockets_apart(owner) as (s1, s2):
            await owner.create(s1, chain.scope)
            await next_event(s2)
            clients = {one: await subscribed(one, chain.scope) for one in (s1, s2)}
            await asyncio.to_thread(redis.stop)
            await all_works(owner, chain, clients)
            granted = await owner.granted(s2, MORE)
            assert list(granted["sessionScopes"]) == [chain.scope, "eip155:137"]
            await next_event(s1)
            await orm(owner.edit, chain.scope)
            for client in clients:
                await next_event(client)
            await asyncio.to_thread(redis.start)
            await all_works(owner, chain, clients)
            for client in clients:
                await nothing_comes(client, 0.1)

    with (
        own_redis() as redis,
        live_service(workers=2, env={"REDIS_URL": redis.url}) as live,
    ):
        run(scenario(Owner(live.base_url)))


def test_while_postgresql_is_away_calls_fail_and_what_waits_goes_on_waiting(
    chain: GrowingChain, database: PostgresServer
) -> None:
    async def scenario(owner: Owner) -> None:
        async with sockets_apart(owner) as (s1, s2):
            await owner.create(s1, chain.scope)
            await next_event(s2)
            clients = {one: await subscribed(one, chain.scope) for one in (s1, s2)}
            waiting = await owner.asking(s2, MORE)
            await asyncio.to_thread(database.stop)
            for client in clients:
                for call in (
                    client.call("wallet_getSession"),
                    client.call("wallet_revokeSession"),
                    client.invoke(chain.scope, "eth_chainId"),
                ):
                    assert (await failure(call)).code in (-32603, -32002)
            with pytest.raises(InvalidStatus) as refused:
                await owner.connect()
            assert refused.value.response.status_code == 503
            assert not waiting.done()
            await asyncio.to_thread(database.start)
            await answered(*clients)
            await all_works(owner, chain, clients)
            await orm(owner.approve)
            assert list((await waiting)["sessionScopes"]) == [chain.scope, "eip155:137"]
            await next_event(s1)
            await orm(owner.revoke)
            for client in clients:
                assert (await next_event(client))["params"] == {"sessionScopes": {}}
                error = await failure(client.invoke(chain.scope, "eth_chainId"))
                assert error.code == 4100

    with live_service(workers=2, may_crash=True) as live:
        owner = Owner(live.base_url)
        connections.close_all()
        run(scenario(owner))


async def answered(*clients: WalletClient) -> None:
    """Wait until calls of clients are answered again."""

    async def is_answered(client: WalletClient) -> bool:
        try:
            assert (await client.call("wallet_getSession"))["sessionScopes"]
        except CallFailed:
            return False
        return True

    for client in clients:
        await until(lambda client=client: is_answered(client))  # type: ignore[misc]


def test_requests_of_a_killed_process_leave_the_inbox_and_no_others(
    chain: GrowingChain,
) -> None:
    async def scenario(owner: Owner, pids: list[int]) -> None:
        tokens = [owner.token, await orm(owner.new_token, "Q")]
        async with sockets_apart(owner, tokens) as clients:
            calls = [await owner.asking(clients[0], MORE)]
            calls.append(asyncio.create_task(ask(clients[1])))
            pending = ConsentRequest.objects.pending().filter(dapp__user=owner.user)
            await until(lambda: has(pending, 2))
            os.kill(pids[0], signal.SIGKILL)
            done, left = await asyncio.wait(calls, return_when="FIRST_COMPLETED")
            assert isinstance(done.pop().exception(), Disconnected)
            await until(lambda: has(pending, 1))
            request = await orm(owner.pending)
            await orm(owner.approve)
            assert list((await left.pop())["sessionScopes"]) == ["eip155:137"]
        others = ConsentRequest.objects.exclude(pk=request.pk)
        assert (await orm(others.get)).state == RequestState.WITHDRAWN

    async def ask(client: WalletClient) -> object:
        return await client.call("wallet_createSession", MORE)

    async def has(pending: QuerySet[ConsentRequest], count: int) -> bool:
        return await orm(pending.count) == count

    with live_service(workers=2) as live:
        run(scenario(Owner(live.base_url), live.server.pids))
