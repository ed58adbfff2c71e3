"""A queue that serves keys in turn."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class FairQueue(Generic[T]):
    """Items by key. Each key has its items taken in order, and keys take turns.

    So a key with a thousand items delays another key's first item by one.
    """

    def __init__(self) -> None:
        self._items: OrderedDict[Hashable, deque[T]] = OrderedDict()
        self._length = 0

    def __len__(self) -> int:
        """Return the number of items."""
        return self._length

    def push(self, key: Hashable, item: T) -> None:
        """Add an item behind the others of its key."""
        waiting = self._items.get(key)
        if waiting is None:
            waiting = self._items[key] = deque()
        waiting.append(item)
        self._length += 1

    def push_first(self, key: Hashable, item: T) -> None:
        """Add an item that is taken next."""
        waiting = self._items.setdefault(key, deque())
        waiting.appendleft(item)
        self._items.move_to_end(key, last=False)
        self._length += 1

    def next(self) -> T:
        """Return the item that `pop` would take. Raises: IndexError without any."""
        for waiting in self._items.values():
            return waiting[0]
        raise IndexError("the queue is empty")

    def pop(self) -> T:
        """Take the next item. Raises: IndexError without any."""
        for key, waiting in self._items.items():
            item = waiting.popleft()
            self._length -= 1
            if waiting:
                self._items.move_to_end(key)
            else:
                del self._items[key]
            return item
        raise IndexError("the queue is empty")
