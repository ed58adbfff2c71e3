"""A limit for the memory that batches use while their responses are built."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Hashable


class Reservation:
    """Memory that is reserved for one batch, or requested.

    size: bytes.
    admitted: completes when the memory is reserved. None if it was reserved at once.
    """

    __slots__ = ("admitted", "owner", "size")

    def __init__(self, owner: Hashable, size: int) -> None:
        self.owner = owner
        self.size = size
        self.admitted: asyncio.Future[None] | None = None


class Reservations:
    """Reserves memory for batches. Above a limit, batches wait until others are done.

    The owners of waiting batches take turns. Each owner's batches keep their order.

    limit: bytes reserved in total. owner_limit: bytes reserved by one owner.
    """

    def __init__(self, limit: int, owner_limit: int) -> None:
        self._limit = limit
        self._owner_limit = min(limit, owner_limit)
        self._waiting: dict[Hashable, deque[Reservation]] = {}
        self._by_owner: dict[Hashable, int] = {}
        self.size = 0
        """Bytes that are reserved now."""

    def reserve(self, owner: Hashable, size: int) -> Reservation:
        """Request memory. The caller awaits `admitted` and must call `release`.

        size: bytes. It is reduced to the limit of an owner.
        """
        reservation = Reservation(owner, min(size, self._owner_limit))
        if self._waiting or not self._take(reservation):
            loop = asyncio.get_running_loop()
            reservation.admitted = loop.create_future()
            self._waiting.setdefault(owner, deque()).append(reservation)
            self._admit()
        return reservation

    def release(self, reservation: Reservation) -> None:
        """Free reserved memory, or withdraw the request."""
        owner, admitted = reservation.owner, reservation.admitted
        if admitted is None or (admitted.done() and not admitted.cancelled()):
            self.size -= reservation.size
            self._by_owner[owner] -= reservation.size
            if not self._by_owner[owner]:
                del self._by_owner[owner]
        else:
            admitted.cancel()
            queue = self._waiting[owner]
            queue.remove(reservation)
            if not queue:
                del self._waiting[owner]
        if self._waiting:
            self._admit()

    def _take(self, reservation: Reservation) -> bool:
        """Reserve memory if both limits allow it."""
        of_owner = self._by_owner.get(reservation.owner, 0) + reservation.size
        size = self.size + reservation.size
        if size > self._limit or of_owner > self._owner_limit:
            return False
        self.size = size
        self._by_owner[reservation.owner] = of_owner
        return True

    def _admit(self) -> None:
        """Admit waiting batches while there is memory, one of each owner in turn.

        A batch that waits for memory blocks smaller ones behind it, unless it waits
        because of its owner's limit.
        """
        turns = deque(self._waiting)
        while turns:
            owner = turns.popleft()
            queue = self._waiting[owner]
            first = queue[0]
            assert first.admitted is not None
            if not first.admitted.cancelled():  # else `release` is about to be called
                if self.size + first.size > self._limit:
                    return
                if not self._take(first):
                    continue
                first.admitted.set_result(None)
                queue.popleft()
                del self._waiting[owner]
                if queue:
                    self._waiting[owner] = queue
                    turns.append(owner)
