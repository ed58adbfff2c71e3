"""Sends messages about committed changes, from a thread that no commit waits for.

A message names a stream and a number, and nothing else. If it can't be sent it is
dropped, because every process polls its streams.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from outbox.streams import MESSAGE_TYPE, group_of

logger = logging.getLogger(__name__)

COALESCE_SECONDS = 0.001
"""Pause after messages were sent. Changes of a stream in it become one message."""

SEND_SECONDS = 1.0
"""Time limit for the messages that are sent together."""

FLUSH_SECONDS = 0.5
"""How long a process that ends waits for its last messages, as `manage.py` does."""

MAX_WAITING = 10_000
"""Streams with a message that was not sent yet. Those of further streams are dropped."""

LOG_SECONDS = 60.0
"""Shortest time between two log lines about messages that were not sent."""


class Layer(Protocol):
    """The part of a channel layer that sends to groups."""

    async def group_send(self, group: str, message: dict[str, Any]) -> None:
        """Send a message to all channels of a group."""


class Publisher:
    """Sends messages to the groups of streams.

    layer: returns the channel layer; called in the publisher's thread.
    """

    def __init__(self, layer: Callable[[], Layer]) -> None:
        self._layer = layer
        self._changed = threading.Condition()
        self._waiting: dict[str, int] = {}
        self._is_sending = False
        self._thread: threading.Thread | None = None
        self._next_log = 0.0

    def publish(self, numbers: Mapping[str, int]) -> None:
        """Schedule a message for each stream, with the number of its newest entry."""
        with self._changed:
            for stream, number in numbers.items():
                if stream in self._waiting or len(self._waiting) < MAX_WAITING:
                    self._waiting[stream] = max(number, self._waiting.get(stream, 0))
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="outbox", daemon=True
                )
                self._thread.start()
                atexit.register(self.flush, FLUSH_SECONDS)
            self._changed.notify_all()

    def flush(self, timeout: float) -> bool:
        """Wait until all messages were sent or dropped; return False after `timeout`."""
        with self._changed:
            return self._changed.wait_for(
                lambda: not self._waiting and not self._is_sending, timeout
            )

    def _run(self) -> None:
        with asyncio.Runner() as runner:
            while True:
                with self._changed:
                    self._is_sending = False
                    self._changed.notify_all()
                    self._changed.wait_for(lambda: self._waiting)
                    self._is_sending = True
                    numbers, self._waiting = self._waiting, {}
                try:
                    runner.run(self._send(numbers))
                except Exception as error:
                    self._log(error)
                time.sleep(COALESCE_SECONDS)

    async def _send(self, numbers: Mapping[str, int]) -> None:
        layer = self._layer()
        async with asyncio.timeout(SEND_SECONDS):
            for stream, number in numbers.items():
                message = {"type": MESSAGE_TYPE, "stream": stream, "number": number}
                await layer.group_send(group_of(stream), message)

    def _log(self, error: Exception) -> None:
        now = time.monotonic()
        if now >= self._next_log:
            self._next_log = now + LOG_SECONDS
            text = str(error) or type(error).__name__
            logger.warning("other processes have to poll for changes: %s", text)
