"""Fair shares of processes, connections and the event loop among customers."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import asynccontextmanager
from typing import Generic, TypeVar

SLOW_SECONDS = 0.25
"""A customer who has held a place for longer is slow for the next RECENT_SECONDS."""
RECENT_SECONDS = 60.0
"""A customer who has asked for a place, or held one, in this time is a recent one."""
_CUSTOMERS_KEPT = 1024

T = TypeVar("T")


class FairQueue(Generic[T]):
    """Items by customer. Each customer's items keep their order, and customers take turns.

    So a customer with a thousand items delays another customer's first item by one.
    """

    def __init__(self) -> None:
        self._items: OrderedDict[Hashable, deque[T]] = OrderedDict()
        self._length = 0

    def __len__(self) -> int:
        """Return the number of items."""
        return self._length

    def push(self, customer: Hashable, item: T) -> None:
        """Add an item behind the others of its customer."""
        self._items.setdefault(customer, deque()).append(item)
        self._length += 1

    def push_first(self, customer: Hashable, item: T) -> None:
        """Add an item before the others of its customer, whose turn does not change."""
        self._items.setdefault(customer, deque()).appendleft(item)
        self._length += 1

    def pop(
        self, may_start: Callable[[Hashable], bool] = lambda customer: True
    ) -> tuple[Hashable, T]:
        """Take the first item of the next customer who may start, and return both.

        Raises: IndexError if there is none.
        """
        for customer, waiting in self._items.items():
            if may_start(customer):
                item = waiting.popleft()
                self._length -= 1
                if waiting:
                    self._items.move_to_end(customer)
                else:
                    del self._items[customer]
                return customer, item
        raise IndexError("no item may start")

    def of(self, customer: Hashable) -> deque[T]:
        """Return a copy of the items of a customer."""
        return self._items.get(customer, deque()).copy()

    def pop_of(self, customer: Hashable) -> T:
        """Take the first item of a customer. Raises: KeyError if there is none."""
        waiting = self._items[customer]
        item = waiting.popleft()
        self._length -= 1
        if not waiting:
            del self._items[customer]
        return item


class Use:
    """One of a limited number of places, held by a customer.

    begun: `time.monotonic()` at the beginning; the holder sets it again after a
    preparation that the customer did not cause, such as the start of a process.
    """

    __slots__ = ("begun", "customer")

    def __init__(self, customer: Hashable, begun: float) -> None:
        self.customer = customer
        self.begun = begun


class Shares:
    """Decides which customer may have a free place.

    Any customer may have a free place, except the last free one. While several customers
    are recent, the last one is reserved for customers who hold no place. While one of the
    recent customers is not slow, slow customers may not hold all places together.
    Therefore a customer with short uses only waits for other short uses. A customer who
    is the only recent one may hold all places.

    places: the number of places. If there is only one, any customer may have it.
    """

    def __init__(self, places: int) -> None:
        self._places = places
        self._uses: set[Use] = set()
        self._recent: OrderedDict[Hashable, float] = OrderedDict()
        """When each customer has last asked for a place or returned one; latest last."""
        self._slow: dict[Hashable, float] = {}
        """When each customer's last use of more than SLOW_SECONDS has ended."""

    def ask(self, customer: Hashable, now: float) -> None:
        """Note that a customer waits for a place. now: `time.monotonic()`."""
        self._recent[customer] = now
        self._recent.move_to_end(customer)
        if len(self._recent) > _CUSTOMERS_KEPT:
            oldest, _ = self._recent.popitem(last=False)
            self._slow.pop(oldest, None)

    def begin(self, customer: Hashable, now: float) -> Use:
        """Give a place to a customer."""
        self.ask(customer, now)
        use = Use(customer, now)
        self._uses.add(use)
        return use

    def end(self, use: Use, now: float) -> None:
        """Take a place back."""
        self._uses.discard(use)
        self.ask(use.customer, now)
        if now - use.begun > SLOW_SECONDS:
            self._slow[use.customer] = now

    def may_begin(self, customer: Hashable, free: int, now: float) -> bool:
        """Return whether a customer may have a place. free: the number of free places."""
        if free > 1 or self._places == 1:
            return True
        others = self._others(customer, now)
        if not others:
            return True
        if any(use.customer == customer for use in self._uses):
            return False
        if not self._is_slow(customer, now):
            return True
        if all(self._is_slow(other, now) for other in others):
            return True
        held = sum(self._is_slow(use.customer, now) for use in self._uses)
        return held < self._places - 1

    def _others(self, customer: Hashable, now: float) -> set[Hashable]:
        """Return the other recent customers."""
        found = {use.customer for use in self._uses}
        for other, last in reversed(self._recent.items()):
            if now - last >= RECENT_SECONDS:
                break
            found.add(other)
        return found - {customer}

    def _is_slow(self, customer: Hashable, now: float) -> bool:
        """Return whether one of a customer's recent or present uses is long."""
        ended = self._slow.get(customer)
        if ended is not None and now - ended < RECENT_SECONDS:
            return True
        return any(
            use.customer == customer and now - use.begun > SLOW_SECONDS
            for use in self._uses
        )


class Turns:
    """Places that are held during an operation. Customers take turns."""

    def __init__(self, places: int) -> None:
        self._free = places
        self._shares = Shares(places)
        self._queue: FairQueue[asyncio.Future[Use]] = FairQueue()

    @asynccontextmanager
    async def place(self, customer: Hashable) -> AsyncIterator[None]:
        """Hold a place, as soon as there is one for the customer."""
        future: asyncio.Future[Use] = asyncio.get_running_loop().create_future()
        self._shares.ask(customer, time.monotonic())
        self._queue.push(customer, future)
        self._admit()
        try:
            await future
            yield
        finally:
            if not future.cancel():
                self._free += 1
                self._shares.end(future.result(), time.monotonic())
                self._admit()

    def _admit(self) -> None:
        """Give free places to those who wait."""
        now = time.monotonic()
        while self._free and len(self._queue):
            try:
                customer, future = self._queue.pop(
                    lambda each: self._shares.may_begin(each, self._free, now)
                )
            except IndexError:
                return
            if not future.done():  # else it was cancelled
                self._free -= 1
                future.set_result(self._shares.begin(customer, now))


class LoopTurns:
    """Turns on the event loop: one for each of its iterations, and customers alternate.

    An operation whose length a customer chooses, such as encoding a long result, waits
    for a turn before each slice of about a millisecond. So any number of such operations
    delays other requests by one slice.
    """

    def __init__(self) -> None:
        self._queue: FairQueue[asyncio.Future[None]] = FairQueue()

    async def wait(self, customer: Hashable) -> None:
        """Wait for the customer's next turn."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        if not len(self._queue):
            loop.call_soon(self._next, loop)
        self._queue.push(customer, future)
        await future

    def _next(self, loop: asyncio.AbstractEventLoop) -> None:
        while len(self._queue):
            _, future = self._queue.pop()
            if not future.done():  # else it was cancelled
                future.set_result(None)
                break
        if len(self._queue):
            loop.call_soon(self._next, loop)
