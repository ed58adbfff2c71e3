"""Keys that are charged, by clocks that stand still until they are moved."""

from __future__ import annotations

from itertools import count

from keys.limiter.errors import DailyQuotaExceeded, RateLimited


class Clock:
    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


async def spend(limiter, api_key_id, limits, credits):
    """Charge a key, waiting if need be."""
    await limiter.charge(api_key_id, limits, credits)


async def count_admitted(limiter, api_key_id, limits, credits=1):
    """Charge a key until it is refused; return how often it was not."""
    for admitted in count():
        try:
            await spend(limiter, api_key_id, limits, credits)
        except (RateLimited, DailyQuotaExceeded):
            return admitted
    raise AssertionError
