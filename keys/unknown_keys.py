"""A rate limit for requests with unknown keys, per client address.

A key is too long to be guessed. The limit bounds the work that guesses, or a program with
a wrong key, cause. It does not apply to requests with a key that exists.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from math import ceil
from typing import TypeVar

from jsonrpc.later import Later
from keys.errors import TooManyInvalidKeys
from keys.limiter.gcra import SECOND, Bucket, Limits, Verdict, take
from server.addresses import owner_of, read_address

_T = TypeVar("_T")

MAX_ADDRESSES = 10_000
"""Most addresses that are counted at a time. The least recent one is evicted."""

_COST = 60
"""Credits of an attempt: a rate of n credits a second is then n attempts a minute."""


class _Client:
    """One address: its bucket, and the lock for its lookups once it is over the limit."""

    __slots__ = ("_lock", "bucket")

    def __init__(self) -> None:
        self.bucket = Bucket()
        self._lock = asyncio.Lock()

    async def look_up_in_turn(self, look_up: Callable[[], Later[_T]]) -> _T:
        """Look a key up after the earlier lookups of the address."""
        async with self._lock:
            return await look_up()


class UnknownKeys:
    """Counts the requests with unknown keys of each address, in this process.

    per_minute: requests per minute of one address, which is also its burst. 0: no limit.
    clock: monotonic seconds.
    """

    def __init__(
        self, per_minute: int, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._limits = (
            Limits(rate=per_minute, burst=per_minute * _COST) if per_minute else None
        )
        self._clock = clock
        self._clients: OrderedDict[str, _Client] = OrderedDict()

    def count(self, address: str | None) -> TooManyInvalidKeys | None:
        """Count a request with an unknown key; return an error if there were too many.

        address: the client's IPv4 or IPv6 address; None for a unix socket. None and
            loopback addresses are not counted, because a proxy that does not name its
            clients has such an address.
        """
        place = _place(address)
        if self._limits is None or place is None:
            return None
        client = self._clients.get(place)
        if client is None:
            client = self._clients[place] = _Client()
            if len(self._clients) > MAX_ADDRESSES:
                self._clients.popitem(last=False)
        self._clients.move_to_end(place)
        client.bucket, (verdict, _, wait) = take(
            client.bucket, self._limits, self._now(), needed=_COST
        )
        if verdict is Verdict.GIVEN:
            return None
        return TooManyInvalidKeys(ceil(wait / SECOND))

    def look_up(
        self, address: str | None, look_up: Callable[[], Later[_T]]
    ) -> Later[_T]:
        """Look a key up, one at a time for addresses over the limit.

        look_up: sends the query. Lookups of such an address queue here instead of filling
            the database's queue.
        """
        place = _place(address) if self._clients else None
        client = None if place is None else self._clients.get(place)
        if client is None or self._limits is None:
            return look_up()
        _, outcome = take(client.bucket, self._limits, self._now(), needed=_COST)
        if outcome.verdict is Verdict.GIVEN:
            return look_up()
        return Later.from_coroutine(client.look_up_in_turn(look_up))

    def _now(self) -> int:
        return int(self._clock() * SECOND)


def _place(address: str | None) -> str | None:
    """Return the IPv4 address or IPv6's /64 network; None for loopback addresses."""
    found = read_address(address)
    return None if found is None or found.is_loopback else owner_of(address)
