"""A channel layer that loses, repeats, delays and reorders messages."""

from __future__ import annotations

from collections import deque
from itertools import count
from random import Random
from typing import Any, Generic, TypeVar

from channels_redis.pubsub import RedisPubSubChannelLayer

from outbox.streams import MESSAGE_TYPE

Item = TypeVar("Item")

_layers = count(1)


class Disturbance(Generic[Item]):
    """Changes a sequence of items: some are lost, repeated or held back.

    rate: share of the items that are disturbed.
    """

    def __init__(self, rate: float, random: Random) -> None:
        self._rate = rate
        self._random = random
        self._held: list[tuple[int, Item]] = []
        """Delayed items, with the number of items that are still passed on earlier."""

    def pass_on(self, item: Item) -> list[Item]:
        """Return the items that arrive now."""
        due = [one for left, one in self._held if left == 0]
        self._held = [(left - 1, one) for left, one in self._held if left > 0]
        if self._random.random() >= self._rate:
            return [item, *due]
        match self._random.choice(("lost", "repeated", "held", "both")):
            case "lost":
                return due
            case "repeated":
                return [*due, item, item]
            case "held":
                self._hold(item)
                return due
            case _:
                self._hold(item)
                return [item, *due]

    def _hold(self, item: Item) -> None:
        self._held.append((self._random.randrange(1, 30), item))


class DisturbedLayer(RedisPubSubChannelLayer):
    """A Redis layer that disturbs messages, both when it sends and when it receives.

    It also sends messages about numbers that are not assigned yet.
    """

    def __init__(self, *, rate: float, seed: str, **config: Any) -> None:
        super().__init__(**config)
        self._random = Random(f"{seed} layer {next(_layers)}")
        self._rate = rate
        self._sent = Disturbance[tuple[str, dict[str, Any]]](rate, self._random)
        self._received = Disturbance[dict[str, Any]](rate, self._random)
        self._arrived: deque[dict[str, Any]] = deque()

    async def group_send(self, group: str, message: dict[str, Any]) -> None:
        for its_group, one in self._sent.pass_on((group, message)):
            await super().__getattr__("group_send")(its_group, one)

    async def receive(self, channel: str) -> dict[str, Any]:
        while not self._arrived:
            message = await super().__getattr__("receive")(channel)
            if message["type"] == MESSAGE_TYPE and self._is_chosen():
                ahead = message["number"] + self._random.randrange(1, 4)
                message = {**message, "number": ahead}
            self._arrived.extend(self._received.pass_on(message))
        return self._arrived.popleft()

    def _is_chosen(self) -> bool:
        return self._random.random() < self._rate / 10
