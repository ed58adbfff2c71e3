"""The generic cell rate algorithm (GCRA) over credits, with a daily quota.

A bucket stores one moment, the theoretical arrival time: when it will be full again. Each
credit that is taken moves this moment forward by 1/rate. A bucket is empty when the
moment is a whole burst ahead. All times are whole microseconds, so that Python and Redis'
Lua, whose numbers are IEEE doubles, compute the same.

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
"""Microseconds of a day in UTC. Unix time does not count leap seconds."""

MAX_RATE = 1_000_000
"""Credits a second: one a microsecond. No key can spend more."""

MAX_BURST = 1_000_000_000
"""Most credits at once. At rate 1, the burst in microseconds is still an integer that a
double represents exactly."""

LEASE_SHARE = 3
"""A lease is at most 1/3 of the credits that are left, so it shrinks near the limit."""

LEASE_SECONDS = 0.01
"""A lease lasts for this long at the full rate, so that renewals do not outweigh its use."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a key.

    rate: credits a second. burst: credits at once.
    daily: credits a day (UTC), or None without a daily limit.
    """

    rate: int
    burst: int
    daily: int | None = None

    @property
    def lease(self) -> int:
        """Most credits that a process may hold unspent.

        1/16 of the burst, or what lasts for `LEASE_SECONDS` if that is more, but at most
        1/3 of the burst.
        """
        lasting = int(self.rate * LEASE_SECONDS)
        return max(self.burst // 16, min(self.burst // LEASE_SHARE, lasting))

    def __post_init__(self) -> None:
        """Raise ValueError for numbers outside the range of the arithmetic."""
        if not 0 < self.rate <= MAX_RATE:
            raise ValueError(f"a rate is 1 to {MAX_RATE}, not {self.rate}")
        if not 0 < self.burst <= MAX_BURST:
            raise ValueError(f"a burst is 1 to {MAX_BURST}, not {self.burst}")
        if self.daily is not None and self.daily <= 0:
            raise ValueError(f"a daily quota is positive, not {self.daily}")


class Bucket(NamedTuple):
    """The state of a key's limits.

    arrival: the theoretical arrival time in microseconds of Unix time.
    day: days since 1970. spent: credits spent on that day.
    """

    arrival: int = 0
    day: int = 0
    spent: int = 0


class Verdict(IntEnum):
    """Whether credits were given, or the limit that was exceeded."""

    GIVEN = 0
    RATE = 1
    QUOTA = 2


class Outcome(NamedTuple):
    """The result of a request for credits.

    credits: how many were given; 0 if the request was refused.
    wait: after a refusal by the rate, microseconds until the request would succeed.
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
    """Take credits from a bucket, or reject the request.

    now: Unix time in microseconds.
    needed: credits that must be taken, otherwise the request is rejected.
    lease: credits that are taken instead of `needed` if enough are left.
    returned: credits of an earlier request that were not spent. A negative number is a
        debt, which is taken even from an empty bucket.
    backlog, used: after an outage, lower bounds for the microseconds by which `arrival`
        is ahead of `now`, and for the credits spent today.
    """
    day = now // DAY
    spent = max(bucket.spent if bucket.day == day else 0, used)
    spent = max(0, spent - returned)
    arrival = max(now + backlog, bucket.arrival)
    # Rounded down, so that returned credits never become more.
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


def debt(bucket: Bucket, now: int) -> dict[str, int]:
    """Return a bucket's debt at a time, as the parameters `backlog` and `used` of `take`."""
    used = bucket.spent if bucket.day == now // DAY else 0
    return {"backlog": max(0, bucket.arrival - now), "used": used}


def _interval(credits: int, rate: int) -> int:
    """Return the microseconds in which the rate yields these credits, rounded up."""
    return ceil(credits * SECOND / rate)
