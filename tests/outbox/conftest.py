from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from channels.layers import channel_layers

from nodeapi.node import database_conninfo
from outbox.subscriber import Subscriber
from postgres.connections import Connections


class Follower:
    """A subscriber and its calls by stream: subjects, None for a reload."""

    def __init__(self, layer: Any = None, conninfo: str | None = None) -> None:
        self.connections = Connections(conninfo or database_conninfo())
        self.layer = layer or channel_layers.make_backend("default")
        self.subscriber = Subscriber(self.connections, self.layer)
        self.received: dict[str, list[str | None]] = {}

    def follow(self, stream: str) -> Callable[[], None]:
        received = self.received.setdefault(stream, [])
        return self.subscriber.subscribe(
            stream, received.append, lambda: received.append(None)
        )

    async def close(self) -> None:
        await self.subscriber.stop()
        await self.connections.close()


@asynccontextmanager
async def following(
    *streams: str, layer: Any = None, conninfo: str | None = None
) -> AsyncIterator[Follower]:
    """Follow streams, starting when their positions are known.

    conninfo: of the database; None for the test database.
    """
    follower = Follower(layer, conninfo)
    for stream in streams:
        follower.follow(stream)
    await follower.subscriber.start()
    try:
        await follower.subscriber.catch_up()
        for received in follower.received.values():
            received.clear()
        yield follower
    finally:
        await follower.close()
