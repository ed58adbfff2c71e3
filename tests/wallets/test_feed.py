"""Events of a feed for subscribers that join while it reads blocks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import orjson
from django.db import connection

from networks.models import Network
from nodeapi.feeds.new_blocks import Feed
from nodeapi.models import Block
from postgres.statement import Row, Statement
from tests.support.rows import add_block, make_network
from tests.support.waiting import until
from tests.support.wallet import Rig
from wallets.sockets.room import Room
from wallets.sockets.subscriptions import DappAudience, DappSubscription


def block(network: Network, number: int) -> None:
    """Add a block whose header contains its name and an empty bloom filter."""
    made = add_block(network, f"{network.slug}-{number}", number)
    header = orjson.dumps({"logsBloom": "0x00", "number": hex(number)})
    Block.objects.filter(pk=made.pk).update(document=header)


def in_thread(work: Callable[..., None], *arguments: Any) -> None:
    """Run a function that uses the database in a thread, and close its connections."""
    try:
        work(*arguments)
    finally:
        connection.close()


def feed_of(rig: Rig, network: Network, fetch: Callable[..., Any]) -> Feed:
    """Return a feed of a network. fetch: executes its queries, and no others."""
    connections: Any = SimpleNamespace(fetch=fetch)
    return Feed(connections, rig.wallet.node.store, network.pk)


def numbers(frames: list[bytes]) -> list[str]:
    found = [orjson.loads(frame)["params"]["notification"] for frame in frames]
    return [one["params"]["result"]["number"] for one in found]


def test_subscription_opened_while_blocks_are_read_misses_none(rig: Rig) -> None:
    """Blocks may be committed after the client's answer and before they are read."""
    network = make_network("fed", chain_id=4242)
    block(network, 1)
    connections = rig.wallet.node.connections
    room = Room(rig.dapp.pk, rig.wallet.store)
    rig.run(room.refreshed())
    sent: list[bytes] = []
    writer: Any = SimpleNamespace(send=sent.append)
    audience = DappAudience(connections)
    subscription = DappSubscription(audience, room, writer, "eip155:4242", None)
    is_started = False

    def fetch(*query: Any) -> asyncio.Future[list[Row]]:
        if is_started and subscription not in feed.subscribers:
            feed.join(subscription)
            subscription.begin()
        return connections.fetch(*query)

    feed = feed_of(rig, network, fetch)
    rig.run(feed.start())
    is_started = True

    async def sent_after_refresh(count: int) -> None:
        feed.refresh()
        await until(lambda: len(sent) >= count)

    block(network, 2)
    rig.run(sent_after_refresh(1))
    block(network, 3)
    rig.run(sent_after_refresh(2))
    block(network, 4)
    rig.run(sent_after_refresh(3))
    rig.run(feed.stop())
    assert numbers(sent) == ["0x2", "0x3", "0x4"]


def test_a_reorganisation_while_another_one_is_read_skips_no_block(rig: Rig) -> None:
    """The second one is deeper, and is committed between the two queries."""
    network = make_network("refed", chain_id=4243)
    for number in (1, 2, 3):
        block(network, number)

    def replace(first: int, name: str) -> None:
        replaced = Block.objects.filter(network=network, number__gte=first)
        replaced.update(is_canonical=False)
        for number in range(first, 4):
            made = add_block(network, f"{name}-{number}", number)
            header = {"logsBloom": "0x00", "number": hex(number), "extraData": name}
            Block.objects.filter(pk=made.pk).update(document=orjson.dumps(header))

    connections = rig.wallet.node.connections
    queries = 0

    async def fetch(
        statement: Statement, parameters: Sequence[bytes] = ()
    ) -> list[Row]:
        nonlocal queries
        rows = await connections.fetch(statement, parameters)
        queries += 1
        if queries == 3:  # the first query is that of the start
            await asyncio.to_thread(in_thread, replace, 2, "second")
        return rows

    feed = feed_of(rig, network, fetch)
    rig.run(feed.start())
    room = Room(rig.dapp.pk, rig.wallet.store)
    rig.run(room.refreshed())
    sent: list[bytes] = []
    writer: Any = SimpleNamespace(send=sent.append)
    subscription = DappSubscription(
        DappAudience(connections), room, writer, "eip155:4243", None
    )
    subscription.begin()
    feed.join(subscription)
    replace(3, "first")

    async def sent_after_refresh() -> None:
        feed.refresh()
        await until(lambda: numbers(sent)[-1:] == ["0x3"])

    rig.run(sent_after_refresh())
    rig.run(feed.stop())
    assert numbers(sent) == ["0x2", "0x3"]
    assert all(b"second" in frame for frame in sent)
