"""A cache of limited size whose entries expire after some seconds."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

ENTRY_BYTES = 400
"""Estimated overhead of an entry."""


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
