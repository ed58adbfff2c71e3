"""What a feed hands out to those who come while it is at work."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from networks.models import Network
from nodeapi.models import Block
from tests.support.rows import add_block, make_network
from tests.support.wallet import Rig
from wallets.sockets.feed import Feed
from wallets.sockets.room import Room
from wallets.sockets.subscriptions import Subscription


def block(network: Network, number: int) -> None:
    """Add a block, the header of which names it and says that it has no logs."""
    made = add_block(network, f"{network.slug}-{number}", number)
    header = orjson.dumps({"logsBloom": "0x00", "number": hex(number)})
    Block.objects.filter(pk=made.pk).update(document=header)


def numbers(frames: list[bytes]) -> list[str]:
    found = [orjson.loads(frame)["params"]["notification"] for frame in frames]
    return [one["params"]["result"]["number"] for one in found]


def test_who_subscribes_while_blocks_are_read_misses_none(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks may be committed after he has his answer, and before they are read."""
    network = make_network("fed", chain_id=4242)
    block(network, 1)
    feed = Feed(rig.wallet, network.pk)
    room = Room(rig.dapp.pk, rig.wallet.store)
    rig.run(room.looked())
    rig.run(feed.start())
    sent: list[bytes] = []
    peer: Any = SimpleNamespace(room=room, outbox=SimpleNamespace(send=sent.append))
    subscription = Subscription(peer, "eip155:4242", feed, None)
    read: Callable[[], Awaitable[Any]] = feed._new_blocks

    async def subscribe_and_read() -> Any:
        if subscription not in feed.subscriptions:
            feed.join(subscription)
            subscription.begin()
        return await read()

    monkeypatch.setattr(feed, "_new_blocks", subscribe_and_read)
    block(network, 2)
    rig.run(feed._hand_out())
    block(network, 3)
    rig.run(feed._hand_out())
    assert numbers(sent) == ["0x2", "0x3"]
