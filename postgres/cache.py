"""A cache that is bounded by the bytes it holds."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)

ENTRY_BYTES = 400
"""Estimated overhead of an entry: its key, a number and a link."""


class BytesCache(Generic[Key]):
    """Byte strings by key, with eviction of the least recently used.

    capacity: maximum size in bytes, to which each entry adds ENTRY_BYTES. With 0,
        nothing is stored.
    """

    __slots__ = ("_entries", "capacity", "size")

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.size = 0
        self._entries: OrderedDict[Key, bytes] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: Key) -> bytes | None:
        """Return the value of a key, None on a miss. A hit marks it as recently used."""
        value = self._entries.get(key)
        if value is not None:
            self._entries.move_to_end(key)
        return value

    def put(self, key: Key, value: bytes) -> None:
        """Store a value, unless it is larger than the whole cache."""
        if len(value) + ENTRY_BYTES > self.capacity:
            return
        entries = self._entries
        old = entries.pop(key, None)
        if old is not None:
            self.size -= len(old) + ENTRY_BYTES
        entries[key] = value
        self.size += len(value) + ENTRY_BYTES
        while self.size > self.capacity:
            _, dropped = entries.popitem(last=False)
            self.size -= len(dropped) + ENTRY_BYTES
