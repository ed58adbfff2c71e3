"""Cases 119, 121, 124 and 125: subscriptions on two growing chains.

The other cases of 114–125 are in `tests.wallets.test_socket_events`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from tests.support.coroutines import scenario
from tests.support.dapps import (
    Owner,
    failure,
    next_event,
    nothing_comes,
    orm,
    sockets_apart,
)
from tests.support.growing import GrowingChain, next_head, subscribed
from tests.support.live import Live, live_service
from tests.support.wallet import UNAUTHORIZED, served_chains
from wallets import internal_key
from wallets.permissions import Group

SEVEN, EIGHT = "eip155:7", "eip155:8"


@pytest.fixture(scope="module")
def both(module_db: None) -> tuple[GrowingChain, GrowingChain]:
    served_chains()
    return GrowingChain(7), GrowingChain(8)


@pytest.fixture(scope="module")
def live(both: tuple[GrowingChain, GrowingChain]) -> Iterator[Live]:
    internal_key.ensure()
    with live_service(workers=2) as live:
        yield live


@pytest.mark.case(119)
@scenario
async def test_without_notifications_nothing_is_subscribed_to(owner: Owner) -> None:
    wanted = {"optionalScopes": {SEVEN: {"methods": [], "notifications": []}}}
    async with await owner.connect() as s1:
        granted = await owner.granted(s1, wanted, groups=[Group.READ])
        assert granted["sessionScopes"][SEVEN]["notifications"] == []
        error = await failure(s1.invoke(SEVEN, "eth_subscribe", "newHeads"))
        assert (error.code, error.message) == UNAUTHORIZED


@pytest.mark.case(121)
@scenario
async def test_scope_that_is_taken_away_falls_silent_and_no_other(
    owner: Owner, both: tuple[GrowingChain, GrowingChain]
) -> None:
    seven, eight = both
    async with sockets_apart(owner) as (s1, s2):
        await owner.create(s1, SEVEN, EIGHT)
        await next_event(s2)
        names = {}
        for client in (s1, s2):
            await subscribed(client, SEVEN)
            names[client] = await subscribed(client, EIGHT)
        await orm(owner.edit, EIGHT)
        for client in (s1, s2):
            event = await next_event(client)
            assert list(event["params"]["sessionScopes"]) == [EIGHT]
        await seven.grow()
        expected = await eight.grow()
        for client in (s1, s2):
            assert await next_head(client) == (EIGHT, names[client], expected)
            await nothing_comes(client)


@pytest.mark.case(124)
@scenario
async def test_subscriptions_end_with_their_socket(
    owner: Owner, both: tuple[GrowingChain, GrowingChain]
) -> None:
    seven, _ = both
    async with await owner.connect() as s1:
        await owner.create(s1, SEVEN)
        old = await subscribed(s1, SEVEN)
    async with await owner.connect() as again:
        await seven.grow()
        await nothing_comes(again)
        assert await again.invoke(SEVEN, "eth_unsubscribe", old) is False
        new = await subscribed(again, SEVEN)
        expected = await seven.grow()
        assert await next_head(again) == (SEVEN, new, expected)


@pytest.mark.case(125)
@scenario
async def test_subscriptions_belong_to_the_chain_of_their_scope(
    owner: Owner, both: tuple[GrowingChain, GrowingChain]
) -> None:
    async with await owner.connect() as s1:
        await owner.create(s1, SEVEN, EIGHT)
        names = [await subscribed(s1, scope) for scope in (SEVEN, EIGHT)]
        hashes = await asyncio.gather(*(chain.grow() for chain in both))
        found = {await next_head(s1), await next_head(s1)}
        assert found == set(zip((SEVEN, EIGHT), names, hashes, strict=True))
