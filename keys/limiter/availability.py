"""Availability of Redis, as observed by this process."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from math import inf

from keys.limiter.buckets import Buckets, RedisUnavailable

logger = logging.getLogger(__name__)

PROBE_SECONDS = 1.0
"""Interval of the checks during an outage. No request waits for a check."""

LOG_SECONDS = 60.0
"""Interval of the warnings in the log during an outage."""


class Availability:
    """Records an outage of Redis, and checks Redis until it accepts writes again.

    clock: monotonic seconds.
    """

    def __init__(self, buckets: Buckets, clock: Callable[[], float]) -> None:
        self._buckets = buckets
        self._clock = clock
        self._probing: asyncio.Task[None] | None = None
        self._logged_at = -inf
        self._error: RedisUnavailable | None = None

    @property
    def is_available(self) -> bool:
        """Whether Redis answered the last request, or passed the last check."""
        return self._error is None

    def report_outage(self, error: RedisUnavailable) -> None:
        """Record that a request has failed, and start the checks."""
        self._error = error
        self.log_outage()
        if self._probing is None or self._probing.done():
            self._probing = asyncio.create_task(self._probe())

    def log_outage(self) -> None:
        """Log a warning during an outage, at most one in `LOG_SECONDS`."""
        now = self._clock()
        if self._error and now >= self._logged_at + LOG_SECONDS:
            self._logged_at = now
            logger.warning(
                "Redis is unavailable, and each process counts limits separately: %s",
                self._error,
            )

    async def stop(self) -> None:
        """Stop the checks."""
        if self._probing is not None:
            self._probing.cancel()
            await asyncio.gather(self._probing, return_exceptions=True)

    async def _probe(self) -> None:
        while self._error is not None:
            await asyncio.sleep(PROBE_SECONDS)
            try:
                await self._buckets.check()
            except RedisUnavailable as error:
                self._error = error
            else:
                self._error = None
