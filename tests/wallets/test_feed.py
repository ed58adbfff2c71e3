"""What a feed hands out to those who come while it is at work."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import orjson
import pytest
from django.db import connection

from networks.models import Network
from nodeapi.feeds.blocks import Feed
from nodeapi.models import Block
from postgres.statement import Row, Statement, int8
from tests.support.rows import add_block, make_network
from tests.support.waiting import until
from tests.support.wallet import Rig
from wallets.sockets.room import Room
from wallets.sockets.subscriptions import DappAudience, DappSubscription


def block(network: Network, number: int) -> None:
    """Add a block, the header of which names it and says that it has no logs."""
    made = add_block(network, f"{network.slug}-{number}", number)
    header = orjson.dumps({"logsBloom": "0x00", "number": hex(number)})
    Block.objects.filter(pk=made.pk).update(document=header)


def in_thread(work: Callable[..., None], *arguments: Any) -> None:
    """Use the database in a thread that ends."""
    try:
        work(*arguments)
    finally:
        connection.close()


def numbers(frames: list[bytes]) -> list[str]:
    found = [orjson.loads(frame)["params"]["notification"] for frame in frames]
    return [one["params"]["result"]["number"] for one in found]


def test_subscription_opened_while_blocks_are_read_misses_none(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks may be committed after the client's answer and before they are read."""
    network = make_network("fed", chain_id=4242)
    block(network, 1)
    node = rig.wallet.node
    feed = Feed(node.connections, node.store, network.pk)
    room = Room(rig.dapp.pk, rig.wallet.store)
    rig.run(room.refreshed())
    rig.run(feed.start())
    sent: list[bytes] = []
    writer: Any = SimpleNamespace(send=sent.append)
    connections = node.connections
    audience = DappAudience(connections)
    subscription = DappSubscription(audience, room, writer, "eip155:4242", None)
    fetch = connections.fetch

    def subscribe_and_fetch(*query: Any) -> asyncio.Future[list[Row]]:
        if subscription not in feed.subscribers:
            feed.join(subscription)
            subscription.begin()
        return fetch(*query)

    monkeypatch.setattr(connections, "fetch", subscribe_and_fetch)

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


def test_a_reorganisation_while_another_one_is_read_skips_no_block(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
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

    node = rig.wallet.node
    feed = Feed(node.connections, node.store, network.pk)
    rig.run(feed.start())
    room = Room(rig.dapp.pk, rig.wallet.store)
    rig.run(room.refreshed())
    sent: list[bytes] = []
    writer: Any = SimpleNamespace(send=sent.append)
    connections = node.connections
    subscription = DappSubscription(
        DappAudience(connections), room, writer, "eip155:4243", None
    )
    subscription.begin()
    feed.join(subscription)
    fetch, queries = connections.fetch, 0

    async def fetch_and_replace(
        statement: Statement, parameters: Sequence[bytes] = ()
    ) -> list[Row]:
        nonlocal queries
        rows = await fetch(statement, parameters)
        # Other parts of the process, such as the outbox, have queries as well.
        queries += int8(network.pk) in parameters[:1]
        if queries == 2:
            await asyncio.to_thread(in_thread, replace, 2, "second")
        return rows

    replace(3, "first")
    monkeypatch.setattr(connections, "fetch", fetch_and_replace)

    async def sent_after_refresh() -> None:
        feed.refresh()
        await until(lambda: numbers(sent)[-1:] == ["0x3"])

    rig.run(sent_after_refresh())
    rig.run(feed.stop())
    assert numbers(sent) == ["0x2", "0x3"]
    assert all(b"second" in frame for frame in sent)
