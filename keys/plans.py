"""What a key's plan and its own terms come to."""

from __future__ import annotations

from typing import NamedTuple

from keys.limiter.gcra import MAX_BURST, MAX_RATE, Limits

MIN_BURST = 100
"""Credits: more than the dearest call costs, so that each can be made."""


class Terms(NamedTuple):
    """What a plan says, or what was agreed for one key; None: nothing.

    rate: credits a second. burst: credits at once. daily: credits a day of UTC.
    """

    rate: int | None = None
    burst: int | None = None
    daily: int | None = None


def effective_limits(own: Terms, plan: Terms) -> Limits | None:
    """Return the limits of a key, None for a key without any.

    The key's own terms come first. A burst belongs to a rate: who has a rate of his own
    does not have the plan's burst, but two seconds of his rate unless it says otherwise.
    """
    rate = own.rate or plan.rate
    daily = own.daily or plan.daily
    burst = own.burst or (None if own.rate else plan.burst)
    if rate is None and daily is None and burst is None:
        return None
    rate = rate or MAX_RATE
    return Limits(rate, burst or min(MAX_BURST, max(MIN_BURST, 2 * rate)), daily)
