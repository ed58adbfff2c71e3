"""A receiver joins groups, and joins them again when messages stop arriving."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from channels_redis.pubsub import RedisPubSubChannelLayer

from outbox import receiver as module
from outbox.receiver import Receiver
from outbox.redis_address import channel_layer_host
from tests.support.coroutines import scenario
from tests.support.redis_server import own_redis
from tests.support.waiting import until


class Heard:
    """A receiver, and the messages that it has reported."""

    def __init__(self, layer: Any) -> None:
        self.messages: list[tuple[str, int]] = []
        self.joined: list[str] = []
        self.receiver = Receiver(
            layer, lambda *message: self.messages.append(message), self.joined.append
        )


@asynccontextmanager
async def receiving(layer: Any, *streams: str) -> AsyncIterator[Heard]:
    heard = Heard(layer)
    for stream in streams:
        heard.receiver.join(stream)
    await heard.receiver.start()
    try:
        await until(lambda: heard.receiver.is_connected)
        yield heard
    finally:
        await heard.receiver.stop()


def redis_layer(url: str) -> Any:
    return RedisPubSubChannelLayer(hosts=[channel_layer_host(url)])


async def send(layer: Any, stream: str, **content: Any) -> None:
    message = {"type": "outbox.changed", "stream": stream, **content}
    await layer.group_send(f"outbox.{stream}", message)


@scenario
async def test_messages_of_joined_streams_are_reported(redis_url: str) -> None:
    sender = redis_layer(redis_url)
    async with receiving(redis_layer(redis_url), "s") as heard:
        heard.receiver.join("t")
        await until(lambda: "t" in heard.joined)
        heard.receiver.leave("s")
        heard.receiver.join("u")
        await until(lambda: "u" in heard.joined)  # `s` was left before
        await send(sender, "s", number=1)
        await send(sender, "t", number="none")  # malformed
        await send(sender, "t", number=2)
        await until(lambda: heard.messages)
        assert heard.messages == [("t", 2)]
        assert heard.joined == ["s", "t", "u"]
    await sender.flush()


@scenario
async def test_groups_are_joined_again_after_redis_was_down(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "ECHO_SECONDS", 0.1)
    with own_redis() as redis:
        async with receiving(redis_layer(redis.url), "s") as heard:
            await asyncio.to_thread(redis.stop)
            await until(lambda: not heard.receiver.is_connected)
            await asyncio.sleep(0.5)  # some attempts to connect
            await asyncio.to_thread(redis.start)
            await until(lambda: heard.receiver.is_connected)
            assert heard.joined == ["s", "s"]
            sender = redis_layer(redis.url)
            await send(sender, "s", number=1)
            await until(lambda: heard.messages == [("s", 1)])
            await sender.flush()
    assert caplog.text.count("streams are polled") == 1


class Deaf:
    """A channel layer that stops receiving without an error, as a lost TCP peer does."""

    def __init__(self, layer: Any) -> None:
        self._layer = layer
        self.is_deaf = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._layer, name)

    async def receive(self, channel: str) -> dict[str, Any]:
        while True:
            message: dict[str, Any] = await self._layer.receive(channel)
            if not self.is_deaf:
                return message

    async def flush(self) -> None:
        self.is_deaf = False
        await self._layer.flush()


@scenario
async def test_silent_loss_of_messages_is_noticed(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ECHO_SECONDS", 0.1)
    monkeypatch.setattr(module, "ANSWER_SECONDS", 0.5)
    layer = Deaf(redis_layer(redis_url))
    sender = redis_layer(redis_url)
    async with receiving(layer, "s") as heard:
        layer.is_deaf = True
        await until(lambda: heard.joined == ["s", "s"])
        await send(sender, "s", number=1)
        await until(lambda: heard.messages == [("s", 1)])
    await sender.flush()
