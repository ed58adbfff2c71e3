"""Cases 119, 121, 124 and 125: subscriptions on two chains that go on.

The others of 114–125 are those of `tests.wallets.test_socket_events`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from nodeapi.chain.builder import ChainBuilder
from nodeapi.chain.schedules import from_genesis, make_genesis
from tests.support import chains
from tests.support.dapps import (
    Owner,
    failure,
    next_event,
    nothing_comes,
    orm,
    scenario,
    sockets_apart,
)
from tests.support.live import Live, live_service
from tests.support.wallet import UNAUTHORIZED, served_chains
from wallets import internal_key
from wallets.client import WalletClient
from wallets.permissions import Group

SEVEN, EIGHT = "eip155:7", "eip155:8"


class Chain:
    """A network of the service that gets blocks when it is told to."""

    def __init__(self, chain_id: int) -> None:
        self.slug = f"net{chain_id}"
        self.genesis = make_genesis(
            chain_id=chain_id, first_blocks=from_genesis("shanghai"), alloc={}
        )
        self.builder = ChainBuilder(self.genesis)
        self.builder.block()
        chains.import_blocks(self.slug, self.genesis, self.builder.blocks)

    async def grow(self) -> str:
        """Bring one more block; return its hash."""
        block = self.builder.block()
        await orm(chains.import_blocks, self.slug, self.genesis, [block])
        return "0x" + block.header.hash.hex()


@pytest.fixture(scope="module")
def both(module_db: None) -> tuple[Chain, Chain]:
    served_chains()
    return Chain(7), Chain(8)


@pytest.fixture(scope="module")
def live(both: tuple[Chain, Chain]) -> Iterator[Live]:
    internal_key.ensure()
    with live_service(workers=2) as live:
        yield live


async def subscribed(client: WalletClient, scope: str) -> str:
    name: str = await client.invoke(scope, "eth_subscribe", "newHeads")
    return name


async def head(client: WalletClient) -> tuple[str, str, str]:
    """Return scope, subscription and hash of the head that a client is told of next."""
    event = await next_event(client)
    inner: Any = event["params"]["notification"]["params"]
    return event["params"]["scope"], inner["subscription"], inner["result"]["hash"]


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
    owner: Owner, both: tuple[Chain, Chain]
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
            assert await head(client) == (EIGHT, names[client], expected)
            await nothing_comes(client)


@pytest.mark.case(124)
@scenario
async def test_subscriptions_end_with_their_socket(
    owner: Owner, both: tuple[Chain, Chain]
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
        assert await head(again) == (SEVEN, new, expected)


@pytest.mark.case(125)
@scenario
async def test_scope_tells_the_chains_apart(
    owner: Owner, both: tuple[Chain, Chain]
) -> None:
    async with await owner.connect() as s1:
        await owner.create(s1, SEVEN, EIGHT)
        names = [await subscribed(s1, scope) for scope in (SEVEN, EIGHT)]
        hashes = await asyncio.gather(*(chain.grow() for chain in both))
        found = {await head(s1), await head(s1)}
        assert found == set(zip((SEVEN, EIGHT), names, hashes, strict=True))
