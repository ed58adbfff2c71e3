"""What the wallet's sockets are compared with: a Channels consumer for each client.

The usual way to tell many clients: each is a consumer that joins a group, and whoever
has news sends it to the group, here over the project's own channel layer. It tells of the
same heads, in the same words, and checks neither tokens nor grants.
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

from bench.listeners import CHAIN_ID, SCOPE  # noqa: E402
from config.gateway import Gateway  # noqa: E402
from nodeapi.service import build_endpoint, build_service  # noqa: E402
from wallets.service import build_wallet  # noqa: E402
from wallets.sockets.feed import Feed, News, _place  # noqa: E402
from wallets.sockets.frames import around_notification  # noqa: E402

GROUP = "heads"


class Consumer(AsyncWebsocketConsumer):  # type: ignore[misc]  # Channels has no types
    """One client; whatever it sends is taken for a subscription."""

    async def receive(
        self, text_data: str | None = None, bytes_data: bytes | None = None
    ) -> None:
        """Join the group, and answer with an id."""
        name = "0x" + secrets.token_hex(16)
        self._around = around_notification(SCOPE, name)
        await self.channel_layer.group_add(GROUP, self.channel_name)
        await self.send(f'{{"jsonrpc":"2.0","id":1,"result":"{name}"}}')

    async def disconnect(self, code: int) -> None:
        """Leave the group."""
        await self.channel_layer.group_discard(GROUP, self.channel_name)

    async def head(self, event: dict[str, Any]) -> None:
        """Send a head on to the client."""
        before, behind = self._around
        await self.send((before + event["head"] + behind).decode())


class GroupFeed(Feed):
    """Reads new heads as the wallet does, and sends each to the group once."""

    async def _hand_out(self) -> bool:
        gone, rows = await self._new_blocks()
        news: list[News] = await self._news([], gone, rows)
        for item in news:
            await get_channel_layer().group_send(
                GROUP, {"type": "head", "head": item.head}
            )
        self._handed_out.extend(map(_place, rows))
        return bool(rows)


class Sender:
    """Follows the one network whose heads are told."""

    async def start(self) -> None:
        """Begin to look for heads."""
        async with asyncio.timeout(10):
            while not node.directory.is_fresh:
                await asyncio.sleep(0.01)
        (network,) = (n for n in node.directory.all() if n.chain_id == CHAIN_ID)
        self._feed = GroupFeed(wallet, network.id)
        await self._feed.start()
        node.directory.follow(self._feed.look)

    async def stop(self) -> None:
        """Look no more."""
        await self._feed.stop()


node = build_service()
wallet = build_wallet(node)
application = Gateway(
    build_endpoint(node),
    pages,
    sockets={"ws/dapp": Consumer.as_asgi()},
    parts=[wallet, Sender()],
)
