"""Bounds of the work that reading from upstreams causes: calls, equal reads, and a cache."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Hashable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Generic, TypeVar

from nodeapi.errors.relay import TooManyRelayedCalls

T = TypeVar("T")
Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

MAX_CALLS = 256
"""Maximum number of relayed calls that a process has in flight."""
MAX_CALLS_OF_KEY = 32
"""Maximum number of relayed calls that an API key has in flight in a process."""

ENTRY_BYTES = 400
"""Estimated overhead of an entry."""


class CallsInFlight:
    """Counts the calls in flight by API key."""

    def __init__(self) -> None:
        self._calls: Counter[int] = Counter()

    @contextmanager
    def hold(self, payer: int) -> Iterator[None]:
        """Count a call while it is in flight.

        payer: the id of the API key. Raises: TooManyRelayedCalls.
        """
        calls = self._calls
        if calls[payer] >= MAX_CALLS_OF_KEY or calls.total() >= MAX_CALLS:
            raise TooManyRelayedCalls
        calls[payer] += 1
        try:
            yield
        finally:
            calls[payer] -= 1
            if not calls[payer]:
                del calls[payer]


class SharedReads:
    """Runs one read at a time for each key."""

    def __init__(self) -> None:
        self._reading: dict[Hashable, asyncio.Task[Any]] = {}

    async def get(self, key: Hashable, read: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Return the result of a read. Concurrent callers with the same key share it."""
        task: asyncio.Task[T] | None = self._reading.get(key)
        if task is None:
            task = asyncio.create_task(read())
            self._reading[key] = task
            task.add_done_callback(partial(self._end, key))
        # A caller that disconnects does not end the read of the others.
        return await asyncio.shield(task)

    async def close(self) -> None:
        """Cancel all reads."""
        tasks = [*self._reading.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _end(self, key: Hashable, task: asyncio.Task[Any]) -> None:
        del self._reading[key]
        if not task.cancelled():
            task.exception()  # otherwise asyncio would log the error if all callers have disconnected


class ShortCache(Generic[Key, Value]):
    """A cache of values for some seconds. The oldest values are evicted first.

    capacity: maximum size in bytes, to which each entry adds ENTRY_BYTES.
    clock: returns seconds.
    """

    __slots__ = ("_capacity", "_clock", "_entries", "_seconds", "size")

    def __init__(
        self,
        seconds: float,
        capacity: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._seconds = seconds
        self._capacity = capacity
        self._clock = clock
        self._entries: dict[Key, tuple[float, int, Value]] = {}
        self.size = 0

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: Key) -> Value | None:
        """Return the value of a key, or None on a cache miss."""
        entry = self._entries.get(key)
        if entry is None or entry[0] <= self._clock():
            return None
        return entry[2]

    def put(self, key: Key, value: Value, size: int) -> None:
        """Store a value, unless it exceeds the capacity. size: its number of bytes."""
        self.discard(key)
        size += ENTRY_BYTES
        now = self._clock()
        entries = self._entries
        while entries:
            oldest = next(iter(entries))
            if entries[oldest][0] > now and self.size + size <= self._capacity:
                break
            self.discard(oldest)
        if size <= self._capacity:
            entries[key] = now + self._seconds, size, value
            self.size += size

    def discard(self, key: Key) -> None:
        """Remove a key's value, if there is one."""
        entry = self._entries.pop(key, None)
        if entry is not None:
            self.size -= entry[1]
