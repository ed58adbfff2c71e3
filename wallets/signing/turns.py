"""A fair semaphore with a bounded queue."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from threading import Condition


class TooBusy(Exception):
    """Raised when the queue is full or the wait is too long."""


class _Ticket:
    def __init__(self, owner: Hashable) -> None:
        self.owner = owner


class Turns:
    """A semaphore for the threads of one process, fair among owners.

    A free place goes to the owner with the fewest working threads, and among equals to
    the one that waits longest. If the queue is full, a new thread replaces the last one
    of the owner with the most places in the queue, unless its own owner would then have
    as many. So no owner can keep others out by asking often.

    max_of_one: most working threads of one owner; None for no such limit.
    """

    def __init__(
        self, max_working: int, max_waiting: int, max_of_one: int | None = None
    ) -> None:
        self._max_working = max_working
        self._max_waiting = max_waiting
        self._max_of_one = max_of_one or max_working
        self._changed = Condition()
        self._working: list[_Ticket] = []
        self._waiting: list[_Ticket] = []

    @property
    def waiting(self) -> int:
        """The number of threads in the queue."""
        with self._changed:
            return len(self._waiting)

    @contextmanager
    def turn(self, owner: Hashable, timeout_seconds: float) -> Iterator[None]:
        """Wait for a free place, and hold it for the duration of the context.

        timeout_seconds: how long to wait.
        Raises: TooBusy after that time, or if there is no place in the queue.
        """
        ticket = _Ticket(owner)
        try:
            with self._changed:
                self._enter(ticket)
                self._changed.wait_for(
                    lambda: ticket not in self._waiting, timeout_seconds
                )
                if ticket not in self._working:
                    raise TooBusy
            yield
        finally:
            with self._changed:
                self._leave(ticket)

    def _enter(self, ticket: _Ticket) -> None:
        self._waiting.append(ticket)
        self._promote()
        if len(self._waiting) > self._max_waiting:
            places = Counter(waiting.owner for waiting in self._waiting)
            most = max(places.values())
            if places[ticket.owner] == most:
                self._waiting.remove(ticket)
                return
            last = next(w for w in reversed(self._waiting) if places[w.owner] == most)
            self._waiting.remove(last)
            self._changed.notify_all()

    def _leave(self, ticket: _Ticket) -> None:
        for tickets in (self._working, self._waiting):
            if ticket in tickets:
                tickets.remove(ticket)
        self._promote()

    def _promote(self) -> None:
        while self._waiting and len(self._working) < self._max_working:
            turns = Counter(working.owner for working in self._working)
            first = min(self._waiting, key=lambda waiting: turns[waiting.owner])
            if turns[first.owner] >= self._max_of_one:
                break
            self._waiting.remove(first)
            self._working.append(first)
        self._changed.notify_all()
