"""A queue that serves keys in turn, and a limit for keys whose executions take long."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

SLOW_SECONDS = 0.5
"""An execution that takes longer makes its key slow."""
RECENT_SECONDS = 60.0
"""A key that has had an execution in this time counts as another user of the workers."""
_KEYS_KEPT = 1024

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
        """Add an item before the others of its key, which becomes the next key."""
        waiting = self._items.setdefault(key, deque())
        waiting.appendleft(item)
        self._items.move_to_end(key, last=False)
        self._length += 1

    def next(self) -> tuple[Hashable, T]:
        """Return the key that is served next, and its item. Raises: IndexError."""
        for key, waiting in self._items.items():
            return key, waiting[0]
        raise IndexError("the queue is empty")

    def pop(self, may_start: Callable[[Hashable], bool] = lambda key: True) -> T:
        """Take the first item of the next key that may start.

        Raises: IndexError if there is none.
        """
        for key, waiting in self._items.items():
            if not may_start(key):
                continue
            item = waiting.popleft()
            self._length -= 1
            if waiting:
                self._items.move_to_end(key)
            else:
                del self._items[key]
            return item
        raise IndexError("no item may start")


class SlowKeys:
    """Keeps one worker free for the keys whose executions are short.

    A key whose executions take long gets all workers but one, so that the short
    executions of other keys do not wait for it. A key that has been the only one for
    RECENT_SECONDS gets all workers.
    """

    def __init__(self) -> None:
        self._seconds: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()
        """By key: when its last execution ended, and how long it took."""

    def note(self, key: Hashable, seconds: float, now: float) -> None:
        """Record that an execution has ended. now: `time.monotonic()`."""
        self._seconds[key] = (now, seconds)
        self._seconds.move_to_end(key)
        if len(self._seconds) > _KEYS_KEPT:
            self._seconds.popitem(last=False)

    def holds_back(self, key: Hashable, now: float) -> bool:
        """Return whether a key does not get the last free worker."""
        _, seconds = self._seconds.get(key, (now, 0.0))
        if seconds <= SLOW_SECONDS:
            return False
        others = (each for each in reversed(self._seconds) if each != key)
        other = next(others, None)
        return other is not None and now - self._seconds[other][0] < RECENT_SECONDS
