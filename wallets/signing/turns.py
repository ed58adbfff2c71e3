"""Turns at work that few may do at once, shared fairly between those who ask for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from threading import Condition


class TooBusy(Exception):
    """Raised when too many ask at once."""


class _Ticket:
    def __init__(self, owner: Hashable) -> None:
        self.owner = owner


class Turns:
    """Who works and who waits, of the threads of one process.

    A free turn goes to whose owner has the fewest, and of these to who waits longest. Where
    nobody else may wait, a newcomer takes the place of the last of the owner with most
    places, unless he would then have as many: nobody keeps others out by asking often.
    """

    def __init__(self, at_once: int, waiting_at_most: int) -> None:
        self._at_once = at_once
        self._waiting_at_most = waiting_at_most
        self._changed = Condition()
        self._working: list[_Ticket] = []
        self._waiting: list[_Ticket] = []

    @contextmanager
    def turn(self, owner: Hashable, patience: float) -> Iterator[None]:
        """Wait until it is the owner's turn, which lasts as long as the context.

        patience: seconds.
        Raises: TooBusy, when it is not his turn within that time or no place to wait is
        left for him.
        """
        ticket = _Ticket(owner)
        try:
            with self._changed:
                self._enter(ticket)
                self._changed.wait_for(lambda: ticket not in self._waiting, patience)
                if ticket not in self._working:
                    raise TooBusy
            yield
        finally:
            with self._changed:
                self._leave(ticket)

    def _enter(self, ticket: _Ticket) -> None:
        self._waiting.append(ticket)
        self._promote()
        if len(self._waiting) > self._waiting_at_most:
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
        while self._waiting and len(self._working) < self._at_once:
            turns = Counter(working.owner for working in self._working)
            first = min(self._waiting, key=lambda waiting: turns[waiting.owner])
            self._waiting.remove(first)
            self._working.append(first)
        self._changed.notify_all()
