"""Charges of keys, with clocks that a test moves."""

from __future__ import annotations

from itertools import count

from keys.limiter.errors import DailyQuotaExceeded, RateLimited


class Clock:
    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


async def spend(limiter, api_key_id, limits, credits):
    """Charge a key, and wait for the result if necessary."""
    await limiter.charge(api_key_id, limits, credits)


async def count_admitted(limiter, api_key_id, limits, credits=1):
    """Charge a key until a charge is rejected. Return the number of successful charges."""
    for admitted in count():
        try:
            await spend(limiter, api_key_id, limits, credits)
        except (RateLimited, DailyQuotaExceeded):
            return admitted
    raise AssertionError
