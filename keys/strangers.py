"""Addresses that keep coming with keys that nobody has.

Guessing a key is hopeless; this bounds the work that it, or a program with a wrong key,
makes. Keys that are somebody's are let in from such an address like from any other.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from math import ceil
from typing import TypeVar

from keys.errors import TooManyInvalidKeys
from keys.limiter.gcra import SECOND, Bucket, Limits, Verdict, take
from keys.places import place_of, read_address

_T = TypeVar("_T")

MAX_ADDRESSES = 10_000
"""Addresses that are remembered, the latest ones; about 1 kB each."""

_COST = 60
"""Credits of an attempt, so that a rate a second is one of attempts a minute."""


class _Visitor:
    """An address: what it has spent, and whose turn it is to have a key looked up."""

    __slots__ = ("bucket", "turn")

    def __init__(self) -> None:
        self.bucket = Bucket()
        self.turn = asyncio.Lock()


class Strangers:
    """Counts, in this process, the attempts of each address with keys nobody has.

    per_minute: how many it may make, at once as well; 0: any number.
    clock: monotonic seconds.
    """

    def __init__(
        self, per_minute: int, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._limits = (
            Limits(rate=per_minute, burst=per_minute * _COST) if per_minute else None
        )
        self._clock = clock
        self._visitors: OrderedDict[str, _Visitor] = OrderedDict()

    def failed(self, address: str | None) -> TooManyInvalidKeys | None:
        """Count an attempt; return what it is refused with if they are too many.

        address: IPv4 or IPv6. None, a unix socket, and this machine's own are not
            counted: what comes from there is a proxy that doesn't tell for whom, or
            somebody with better means.
        """
        place = _place(address)
        if self._limits is None or place is None:
            return None
        visitor = self._visitors.get(place)
        if visitor is None:
            visitor = self._visitors[place] = _Visitor()
            if len(self._visitors) > MAX_ADDRESSES:
                self._visitors.popitem(last=False)
        self._visitors.move_to_end(place)
        visitor.bucket, (verdict, _, wait) = take(
            visitor.bucket, self._limits, self._now(), needed=_COST
        )
        if verdict is Verdict.GIVEN:
            return None
        return TooManyInvalidKeys(ceil(wait / SECOND))

    async def look_up(self, address: str | None, found: Awaitable[_T]) -> _T:
        """Return what a look-up finds; one at a time for addresses that fail too often.

        A flood of well-formed keys waits for itself, and not for the database.
        """
        place = _place(address) if self._visitors else None
        visitor = None if place is None else self._visitors.get(place)
        if visitor is None or self._limits is None:
            return await found
        _, outcome = take(visitor.bucket, self._limits, self._now(), needed=_COST)
        if outcome.verdict is Verdict.GIVEN:
            return await found
        async with visitor.turn:
            return await found

    def _now(self) -> int:
        return int(self._clock() * SECOND)


def _place(address: str | None) -> str | None:
    """Return whom an address stands for, None for this machine."""
    found = read_address(address)
    return None if found is None or found.is_loopback else place_of(address)
