"""The limits that result from a key's plan and its own terms."""

from __future__ import annotations

from typing import NamedTuple

from keys.limiter.gcra import MAX_BURST, MAX_RATE, Limits

MIN_BURST = 100
"""Least burst in credits. It exceeds the price of the most expensive call."""


class Terms(NamedTuple):
    """The terms of a plan or of one key. None means that a term is not specified.

    rate: credits a second. burst: credits at once. daily: credits a day (UTC).
    """

    rate: int | None = None
    burst: int | None = None
    daily: int | None = None


def effective_limits(own: Terms, plan: Terms) -> Limits | None:
    """Return the limits of a key, or None without any.

    The key's own terms take precedence. A burst belongs to a rate. A key with its own
    rate does not get the plan's burst: unless it has its own burst, the burst is two
    seconds of its rate.
    """
    rate = own.rate or plan.rate
    daily = own.daily or plan.daily
    burst = own.burst or (None if own.rate else plan.burst)
    if rate is None and daily is None and burst is None:
        return None
    rate = rate or MAX_RATE
    return Limits(rate, burst or min(MAX_BURST, max(MIN_BURST, 2 * rate)), daily)
