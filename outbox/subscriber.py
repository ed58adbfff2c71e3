"""The streams that a process subscribes to, and whether they are known to be current.

Every stream is read when a message names a number that was not read yet, and at least
once per second. Messages only make it faster.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count

from outbox.reading import UNKNOWN, News, Position, read_news
from outbox.receiver import Layer, Receiver
from postgres.connections import Connections
from postgres.errors import Unavailable

logger = logging.getLogger(__name__)

POLL_SECONDS = 1.0
"""Time between two reads of all streams."""

VERIFIED_SECONDS = 2.0
"""How long streams count as current after all of them were read. This bounds the time
after which a change takes effect."""

START_SECONDS = 1.0
"""Longest wait for the first read at the start of a process."""

RETRY_SECONDS = 0.1
"""Pause after a read that failed."""

FIRST_PAUSE_SECONDS = 0.005
LAST_PAUSE_SECONDS = 1.0
"""Shortest and longest pause before a stream is read again for a named number.

A message may name a number that the database, such as a standby, does not have yet.
Each pause is twice the last.
"""

MAX_STREAMS = 1000
"""Streams that one statement reads, so that a message never waits long for a poll."""

OnChange = Callable[[str], None]
"""Called with the subject of each new entry, once and in order; must not block."""

OnReload = Callable[[], None]
"""Called when entries may have been missed; must not block."""


@dataclass(slots=True, eq=False)
class _Subscription:
    """A subscriber of one stream.

    is_new: its `on_reload` has not been called yet.
    """

    on_change: OnChange
    on_reload: OnReload
    is_new: bool = True


@dataclass(slots=True, eq=False)
class _Stream:
    """A stream with its subscribers.

    named: highest number that a message has named.
    pause: seconds before `named` is looked for again.
    waiters: of `catch_up`, resolved by the next read that begins.
    """

    name: str
    position: Position = UNKNOWN
    named: int = 0
    pause: float = FIRST_PAUSE_SECONDS
    subscriptions: list[_Subscription] = field(default_factory=list)
    waiters: list[asyncio.Future[None]] = field(default_factory=list)


class Subscriber:
    """Reads streams and calls their subscribers. Belongs to one event loop.

    epoch: 0 while changes may be unknown, because no read of all streams has begun and
        succeeded within VERIFIED_SECONDS. Otherwise a number that grows with each such
        interruption. Data that was read in an epoch is current, up to that time, until
        the epoch ends or a subscriber is called.
    layer: a channel layer that nothing else uses.
    """

    def __init__(self, connections: Connections, layer: Layer) -> None:
        self.epoch = 0
        self._connections = connections
        self._receiver = Receiver(layer, self._heard, self._make_due)
        self._streams: dict[str, _Stream] = {}
        self._due: dict[str, None] = {}
        """Names of the streams to read now, in order."""
        self._unpolled: deque[str] = deque()
        """Names of the streams that the present poll has not read yet."""
        self._poll_began: float | None = None
        self._next_poll = 0.0
        self._wake = asyncio.Event()
        self._epochs = count(1)
        self._at_epoch: list[Callable[[], None]] = []
        self._at_lapse: list[Callable[[], None]] = []
        self._has_begun = asyncio.Event()
        self._lapse_timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def has_messages(self) -> bool:
        """Whether messages arrive; otherwise changes are found by polling only."""
        return self._receiver.is_connected

    def subscribe(
        self, stream: str, on_change: OnChange, on_reload: OnReload
    ) -> Callable[[], None]:
        """Call back for each change of a stream that is committed from now on.

        `on_reload` is called once when the stream's position is known: data that was
        read before may be older. It is called again whenever changes may have been
        missed.
        Returns: a function that ends the subscription.
        """
        subscription = _Subscription(on_change, on_reload)
        found = self._streams.get(stream)
        if found is None:
            found = self._streams[stream] = _Stream(stream)
            self._receiver.join(stream)
        found.subscriptions.append(subscription)
        self._make_due(stream)

        def unsubscribe() -> None:
            if subscription in found.subscriptions:
                found.subscriptions.remove(subscription)
            if not found.subscriptions and self._streams.get(stream) is found:
                del self._streams[stream]
                self._receiver.leave(stream)
                _resolve(found.waiters)

        return unsubscribe

    def at_epoch(self, callback: Callable[[], None]) -> None:
        """Call back at each new epoch, when everything has to be read again."""
        self._at_epoch.append(callback)

    def at_lapse(self, callback: Callable[[], None]) -> None:
        """Call back when an epoch ends."""
        self._at_lapse.append(callback)

    async def start(self) -> None:
        """Start reading in the background, and wait a moment for the first epoch.

        Database and Redis may be unavailable.
        """
        await self._receiver.start()
        self._task = asyncio.get_running_loop().create_task(self._run())
        with suppress(TimeoutError):
            async with asyncio.timeout(START_SECONDS):
                await self._has_begun.wait()

    async def stop(self) -> None:
        """Stop reading."""
        await self._receiver.stop()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
        self._lapse()
        for stream in self._streams.values():
            _resolve(stream.waiters)

    async def catch_up(self, streams: Iterable[str] | None = None) -> None:
        """Wait for a read that begins after this call, however long it takes.

        streams: names; None for all that have subscribers. Others are ignored.
        """
        loop = asyncio.get_running_loop()
        futures = []
        for name in list(self._streams if streams is None else streams):
            if name in self._streams:
                futures.append(loop.create_future())
                self._streams[name].waiters.append(futures[-1])
                self._make_due(name)
        await asyncio.gather(*futures)

    # Messages

    def _heard(self, name: str, number: int) -> None:
        """Schedule a read, unless the number is known."""
        stream = self._streams.get(name)
        if stream is not None and number > stream.position.number:
            stream.named = max(stream.named, number)
            self._make_due(name)

    def _make_due(self, name: str) -> None:
        if name in self._streams:
            self._due[name] = None
            self._wake.set()

    # Reading

    async def _run(self) -> None:
        while True:
            try:
                await self._read_forever()
            except Exception:  # a mistake in this module must not stop the process
                logger.exception("streams are read again")
                self._lapse()
                # The current poll lacks the streams of the read that failed.
                self._poll_began, self._next_poll = None, 0.0
                for stream in self._streams.values():
                    stream.position = UNKNOWN
            await asyncio.sleep(RETRY_SECONDS)

    async def _read_forever(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            if self._poll_began is None and loop.time() >= self._next_poll:
                self._poll_began = loop.time()
                self._next_poll = self._poll_began + POLL_SECONDS
                self._unpolled = deque(self._streams)
            if not self._due and self._poll_began is None:
                with suppress(TimeoutError):
                    async with asyncio.timeout_at(self._next_poll):
                        await self._wake.wait()
                continue
            await self._read_batch()

    async def _read_batch(self) -> None:
        """Read streams that are due, and further ones of the present poll."""
        self._wake.clear()
        batch = self._take_batch()
        waiters = [waiter for stream in batch.values() for waiter in stream.waiters]
        positions = {name: stream.position for name, stream in batch.items()}
        try:
            news = await read_news(self._connections, positions)
        except Unavailable as error:
            logger.debug("streams were not read: %s", error)
            self._due |= dict.fromkeys(batch)
            # Begin a new poll. This one would only prove an earlier state to be current.
            self._poll_began, self._next_poll = None, 0.0
            await asyncio.sleep(RETRY_SECONDS)
            return
        for name, stream in batch.items():
            self._apply(stream, news.get(name))
        _resolve(waiters)
        for stream in batch.values():
            stream.waiters = [one for one in stream.waiters if not one.done()]
        if not self._unpolled and self._poll_began is not None:
            self._verified(self._poll_began)
            self._poll_began = None

    def _take_batch(self) -> dict[str, _Stream]:
        """Return the streams to read now; a poll always gets half of the places."""
        names: list[str] = []
        while self._due and len(names) < MAX_STREAMS // 2:
            names.append(next(iter(self._due)))
            del self._due[names[-1]]
        while self._unpolled and len(names) < MAX_STREAMS:
            names.append(self._unpolled.popleft())
        return {name: self._streams[name] for name in names if name in self._streams}

    def _apply(self, stream: _Stream, news: News | None) -> None:
        """Call the subscribers of a stream that was read."""
        subjects: list[str] | None = []
        if news is not None:
            stream.position = news.position
            subjects = news.subjects
        informed = [one for one in stream.subscriptions if not one.is_new]
        for subscription in list(stream.subscriptions):
            if subjects is None or subscription.is_new:
                self._reload(stream, subscription)
        for subject in subjects or ():
            for subscription in informed:
                self._pass_on(stream, subscription, subject)
        if stream.named > stream.position.number:
            self._look_again(stream)
        else:
            stream.pause = FIRST_PAUSE_SECONDS

    def _reload(self, stream: _Stream, subscription: _Subscription) -> None:
        """Call `on_reload`; if it fails, call it again with the next poll."""
        try:
            subscription.on_reload()
        except Exception:
            logger.exception("a subscriber of %s failed", stream.name)
            subscription.is_new = True
        else:
            subscription.is_new = False

    def _pass_on(
        self, stream: _Stream, subscription: _Subscription, subject: str
    ) -> None:
        if subscription.is_new or subscription not in stream.subscriptions:
            return  # it has failed, or was ended by another subscriber
        try:
            subscription.on_change(subject)
        except Exception:
            logger.exception("a subscriber of %s failed", stream.name)
            subscription.is_new = True

    def _look_again(self, stream: _Stream) -> None:
        """Read a stream again soon: a named number is not in the database yet."""
        if stream.pause > LAST_PAUSE_SECONDS:  # there is no such number
            stream.named, stream.pause = 0, FIRST_PAUSE_SECONDS
            return
        loop = asyncio.get_running_loop()
        loop.call_later(stream.pause, self._make_due, stream.name)
        stream.pause *= 2

    # Verification

    def _verified(self, began: float) -> None:
        """Record that all streams were current when a poll began."""
        loop = asyncio.get_running_loop()
        ends = began + VERIFIED_SECONDS
        if ends <= loop.time():
            return
        if self._lapse_timer is not None:
            self._lapse_timer.cancel()
        self._lapse_timer = loop.call_at(ends, self._lapse)
        if self.epoch == 0:
            self.epoch = next(self._epochs)
            self._has_begun.set()
            try:
                for callback in self._at_epoch:
                    callback()
            except Exception:  # the next poll begins another epoch
                logger.exception("a subscriber failed at the beginning of an epoch")
                self._lapse()

    def _lapse(self) -> None:
        """End the epoch: changes may be unknown."""
        if self._lapse_timer is not None:
            self._lapse_timer.cancel()
            self._lapse_timer = None
        if self.epoch == 0:
            return
        self.epoch = 0
        for callback in self._at_lapse:
            try:
                callback()
            except Exception:
                logger.exception("a subscriber failed at the end of an epoch")


def _resolve(waiters: Iterable[asyncio.Future[None]]) -> None:
    for waiter in waiters:
        if not waiter.done():
            waiter.set_result(None)
