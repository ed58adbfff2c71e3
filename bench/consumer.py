"""The reference for the wallet's sockets: one Channels consumer for each client.

This is the usual way to send an event to many clients. Each client is a consumer in a
group, and the event is sent to the group over the project's channel layer. The frames
equal the wallet's. Tokens and grants are not checked.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from typing import Any

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
pages = get_asgi_application()

from channels.generic.websocket import AsyncWebsocketConsumer  # noqa: E402
from channels.layers import get_channel_layer  # noqa: E402
from channels.routing import URLRouter  # noqa: E402
from django.urls import path  # noqa: E402

from bench.listeners import CHAIN_ID, SCOPE  # noqa: E402
from config.gateway import Gateway  # noqa: E402
from nodeapi.endpoint.endpoint import build_endpoint  # noqa: E402
from nodeapi.feeds.blocks import BlockEvent, Feed, _place  # noqa: E402
from nodeapi.node import build_node  # noqa: E402
from wallets.serving.wallet import build_wallet  # noqa: E402
from wallets.sockets.frames import notification_frame  # noqa: E402

GROUP = "heads"


class Consumer(AsyncWebsocketConsumer):  # type: ignore[misc]  # Channels has no types
    """A client's connection. Every message from the client counts as a subscription."""

    async def receive(
        self, text_data: str | None = None, bytes_data: bytes | None = None
    ) -> None:
        """Join the group, and answer with an id."""
        name = "0x" + secrets.token_hex(16)
        self._frame = notification_frame(SCOPE, name)
        await self.channel_layer.group_add(GROUP, self.channel_name)
        await self.send(f'{{"jsonrpc":"2.0","id":1,"result":"{name}"}}')

    async def disconnect(self, code: int) -> None:
        """Leave the group."""
        await self.channel_layer.group_discard(GROUP, self.channel_name)

    async def head(self, event: dict[str, Any]) -> None:
        """Send the client a new head, which the group has received."""
        before, behind = self._frame
        await self.send((before + event["head"] + behind).decode())


class GroupFeed(Feed):
    """Reads new heads as the wallet does, and sends each to the group once."""

    async def _send_new_blocks(self) -> bool:
        gone, rows = await self._new_blocks()
        events: list[BlockEvent] = await self._events(gone, rows, 0, wants_logs=False)
        for event in events:
            await get_channel_layer().group_send(
                GROUP, {"type": "head", "head": event.head}
            )
        self._sent_blocks.extend(map(_place, rows))
        return bool(rows)


class Sender:
    """Sends the new heads of the benchmark's network to the group."""

    async def start(self) -> None:
        """Subscribe to new heads."""
        async with asyncio.timeout(10):
            while not node.directory.is_fresh:
                await asyncio.sleep(0.01)
        (network,) = (n for n in node.directory.all() if n.chain_id == CHAIN_ID)
        self._feed = GroupFeed(node.connections, node.store, network.id)
        await self._feed.start()
        node.directory.subscribe(self._feed.refresh)

    async def stop(self) -> None:
        """Stop sending new heads."""
        await self._feed.stop()


node = build_node()
wallet = build_wallet(node)
endpoint = build_endpoint(node)
application = Gateway(
    endpoint,
    pages,
    sockets=URLRouter([path("ws/dapp", Consumer.as_asgi())]),
    parts=[endpoint, wallet, Sender()],
)
