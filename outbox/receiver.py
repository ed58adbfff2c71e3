"""Receives the messages of this process's streams: one channel, one group per stream.

The channel layer reports neither a lost connection nor a lost message. The receiver
therefore sends a message to itself from time to time. When it does not arrive, the
receiver starts again with new connections.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from typing import Any, Protocol

from outbox.streams import MESSAGE_TYPE, group_of

logger = logging.getLogger(__name__)

ECHO_TYPE = "outbox.echo"

ECHO_SECONDS = 5.0
"""Time between two messages to itself."""

ANSWER_SECONDS = 2.0
"""Time limit for each operation of the channel layer, and for a message to itself."""

FIRST_RETRY_SECONDS = 0.1
LAST_RETRY_SECONDS = 1.0
"""Shortest and longest pause before the receiver starts again; each is twice the last."""

CANCEL_SECONDS = 0.5
"""Pause before the task is cancelled again: redis-py can lose a cancellation."""

Heard = Callable[[str, int], None]
"""Called with the stream and the number of a message."""


class Layer(Protocol):
    """The part of a channel layer that a receiver uses."""

    async def new_channel(self) -> str:
        """Return the name of a new channel of this process."""

    async def receive(self, channel: str) -> dict[str, Any]:
        """Wait for the next message to a channel."""

    async def send(self, channel: str, message: dict[str, Any]) -> None:
        """Send a message to a channel."""

    async def group_add(self, group: str, channel: str) -> None:
        """Add a channel to a group."""

    async def group_discard(self, group: str, channel: str) -> None:
        """Remove a channel from a group."""

    async def flush(self) -> None:
        """Close all connections, and forget all channels and groups."""


class Receiver:
    """Reports the messages about streams, and reconnects by itself.

    layer: used by this receiver only, because it is flushed after a failure.
    on_message: called for each message.
    on_joined: called with a stream when its messages arrive from now on. Earlier ones may
        have been missed.
    """

    def __init__(
        self, layer: Layer, on_message: Heard, on_joined: Callable[[str], None]
    ) -> None:
        self.is_connected = False
        """Whether messages arrive, as far as is known."""
        self._layer = layer
        self._on_message = on_message
        self._on_joined = on_joined
        self._wanted: set[str] = set()
        self._changed = asyncio.Event()
        self._echoes = count(1)
        self._echo = 0
        self._has_echoed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def join(self, stream: str) -> None:
        """Begin to receive the messages of a stream."""
        self._wanted.add(stream)
        self._changed.set()

    def leave(self, stream: str) -> None:
        """Stop receiving the messages of a stream."""
        self._wanted.discard(stream)
        self._changed.set()

    async def start(self) -> None:
        """Start receiving in the background."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """Stop receiving, and close the connections."""
        task, self._task = self._task, None
        while task is not None and not task.done():
            task.cancel()
            await asyncio.wait({task}, timeout=CANCEL_SECONDS)

    async def _run(self) -> None:
        pause = FIRST_RETRY_SECONDS
        while True:
            try:
                await self._receive_until_failure()
            except Exception as error:
                if self.is_connected or pause == FIRST_RETRY_SECONDS:
                    text = str(error) or type(error).__name__
                    logger.warning("no messages, streams are polled: %s", text)
                if self.is_connected:
                    pause = FIRST_RETRY_SECONDS
                self.is_connected = False
            finally:
                await self._flush()
            await asyncio.sleep(pause)
            pause = min(2 * pause, LAST_RETRY_SECONDS)

    async def _flush(self) -> None:
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                await self._layer.flush()
        except Exception as error:
            logger.debug("connections of the channel layer: %s", error)

    async def _receive_until_failure(self) -> None:
        async with asyncio.timeout(ANSWER_SECONDS):
            channel = await self._layer.new_channel()
        loop = asyncio.get_running_loop()
        receiving = loop.create_task(self._receive(channel))
        receiving.add_done_callback(lambda _: self._changed.set())
        joined: set[str] = set()
        next_echo = 0.0
        try:
            while not receiving.done():
                await self._follow_wanted(channel, joined)
                if loop.time() >= next_echo:
                    await self._check_echo(channel, receiving)
                    next_echo = loop.time() + ECHO_SECONDS
                    self._connected()
                with suppress(TimeoutError):
                    async with asyncio.timeout_at(next_echo):
                        await self._changed.wait()
            receiving.result()
        finally:
            receiving.cancel()
            await asyncio.gather(receiving, return_exceptions=True)

    def _connected(self) -> None:
        if not self.is_connected:
            self.is_connected = True
            logger.debug("messages about changes arrive")

    async def _follow_wanted(self, channel: str, joined: set[str]) -> None:
        """Join the groups of new streams, and leave those that are not wanted now."""
        self._changed.clear()
        for stream in joined - self._wanted:
            async with asyncio.timeout(ANSWER_SECONDS):
                await self._layer.group_discard(group_of(stream), channel)
            joined.discard(stream)
        for stream in self._wanted - joined:
            async with asyncio.timeout(ANSWER_SECONDS):
                await self._layer.group_add(group_of(stream), channel)
            joined.add(stream)
            self._on_joined(stream)

    async def _check_echo(self, channel: str, receiving: asyncio.Task[None]) -> None:
        """Send a message to itself, and wait for it.

        Raises: TimeoutError; an exception of the channel layer.
        """
        self._echo = next(self._echoes)
        self._has_echoed.clear()
        async with asyncio.timeout(ANSWER_SECONDS):
            await self._layer.send(channel, {"type": ECHO_TYPE, "number": self._echo})
            echo = asyncio.get_running_loop().create_task(self._has_echoed.wait())
            try:
                await asyncio.wait(
                    {echo, receiving}, return_when=asyncio.FIRST_COMPLETED
                )
            finally:
                echo.cancel()
        if receiving.done():
            receiving.result()

    async def _receive(self, channel: str) -> None:
        while True:
            match await self._layer.receive(channel):
                case {"type": t, "stream": str(stream), "number": int(number)} if (
                    t == MESSAGE_TYPE
                ):
                    self._on_message(stream, number)
                case {"type": t, "number": self._echo} if t == ECHO_TYPE:
                    self._has_echoed.set()
                case message:
                    logger.debug("unknown message: %r", message)
