"""Channel layers that lose messages."""

from __future__ import annotations

import asyncio
import random
from typing import Any

from channels_redis.pubsub import RedisPubSubChannelLayer


class Unreliable:
    """A channel layer that drops half of the messages, and repeats or delays others."""

    def __init__(self, **config: Any) -> None:
        self._layer = RedisPubSubChannelLayer(**config)
        self._random = random.Random(18)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._layer, name)

    async def group_send(self, group: str, message: dict[str, Any]) -> None:
        match self._random.randrange(8):
            case 0 | 1 | 2 | 3:
                return
            case 4:
                await asyncio.sleep(0.1)
            case 5:
                await self._layer.group_send(group, message)
        await self._layer.group_send(group, message)
