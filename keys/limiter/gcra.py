"""The generic cell rate algorithm over credits, with a daily quota beside it.

A bucket is one moment, the theoretical arrival time: when it would be full again. Each
credit taken moves it on by 1/rate; a bucket whose moment lies a whole burst ahead is
empty. All times are whole microseconds, so that Redis' Lua, whose numbers are IEEE
doubles, and Python come to the same.

Source: ITU-T I.371 Annex A, the virtual scheduling algorithm.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from math import ceil, floor
from typing import NamedTuple

SECOND = 1_000_000
"""Microseconds."""

DAY = 86_400 * SECOND
"""Of UTC; leap seconds are not counted, as ever in Unix time."""

MAX_RATE = 1_000_000
"""Credits a second: one a microsecond. No key can spend more."""

MAX_BURST = 1_000_000_000
"""Credits; in microseconds still a number that a double holds exactly."""

LEASE_SHARE = 3
"""Part of what is left that a lease may be: so it shrinks towards the limit."""

LEASE_SECONDS = 0.01
"""Of the rate: a lease that is gone sooner is renewed more than it is used."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a key may spend.

    rate: credits a second. burst: credits at once. daily: credits a day of UTC, None
    for as many as the rate allows.
    """

    rate: int
    burst: int
    daily: int | None = None

    @property
    def lease(self) -> int:
        """Credits that a process may hold at most without having spent them.

        A sixteenth of the burst; where the rate spends that within milliseconds, what
        lasts for some, but never more than a third.
        """
        lasting = int(self.rate * LEASE_SECONDS)
        return max(self.burst // 16, min(self.burst // LEASE_SHARE, lasting))

    def __post_init__(self) -> None:
        """Raise ValueError for what the arithmetic is not made for."""
        if not 0 < self.rate <= MAX_RATE:
            raise ValueError(f"a rate is 1 to {MAX_RATE}, not {self.rate}")
        if not 0 < self.burst <= MAX_BURST:
            raise ValueError(f"a burst is 1 to {MAX_BURST}, not {self.burst}")
        if self.daily is not None and self.daily <= 0:
            raise ValueError(f"a daily quota is positive, not {self.daily}")


class Bucket(NamedTuple):
    """What has been taken so far.

    arrival: microseconds, the theoretical arrival time. day: number of the day since
    1970. spent: credits of that day.
    """

    arrival: int = 0
    day: int = 0
    spent: int = 0


class Verdict(IntEnum):
    """Whether credits are given, or what forbids it."""

    GIVEN = 0
    RATE = 1
    QUOTA = 2


class Outcome(NamedTuple):
    """What came of asking for credits.

    credits: how many are given, at least those that are needed; 0 if they are refused.
    wait: microseconds after which a refusal by the rate would be none.
    """

    verdict: Verdict
    credits: int
    wait: int = 0


def take(
    bucket: Bucket,
    limits: Limits,
    now: int,
    *,
    needed: int,
    lease: int = 0,
    returned: int = 0,
    backlog: int = 0,
    used: int = 0,
) -> tuple[Bucket, Outcome]:
    """Take credits from a bucket, or be refused.

    now: Unix time in microseconds. needed: credits without which nothing is given.
    lease: credits that are welcome, if there are plenty. returned: credits that were
    taken before and not spent.
    backlog, used: microseconds that the bucket's moment lies ahead at least, and credits
    that are spent of the day at least, as a process has counted that was cut off.
    """
    day = now // DAY
    spent = max(bucket.spent if bucket.day == day else 0, used)
    spent = max(0, spent - returned)
    arrival = max(now + backlog, bucket.arrival)
    # What was returned does not count as time that has passed: hence rounded down.
    arrival = max(now, arrival - floor(returned * SECOND / limits.rate))
    full = _interval(limits.burst, limits.rate)
    room = min(limits.burst, floor((full - (arrival - now)) * limits.rate / SECOND))
    quota = room if limits.daily is None else limits.daily - spent
    untouched = Bucket(arrival, day, spent)
    if limits.daily is not None and needed > quota:
        return untouched, Outcome(Verdict.QUOTA, 0)
    if needed > room:
        wait = arrival + _interval(needed, limits.rate) - full - now
        return untouched, Outcome(Verdict.RATE, 0, max(1, wait))
    credits = max(needed, min(lease, min(room, quota) // LEASE_SHARE))
    arrival += _interval(credits, limits.rate)
    return Bucket(arrival, day, spent + credits), Outcome(Verdict.GIVEN, credits)


def lag(bucket: Bucket, now: int) -> dict[str, int]:
    """Return how empty a bucket is at a time, as `take` is told of it."""
    used = bucket.spent if bucket.day == now // DAY else 0
    return {"backlog": max(0, bucket.arrival - now), "used": used}


def _interval(credits: int, rate: int) -> int:
    """Return the microseconds in which credits grow again, rounded up."""
    return ceil(credits * SECOND / rate)
