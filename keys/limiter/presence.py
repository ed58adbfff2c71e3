"""Whether Redis answers, as far as this process knows."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from math import inf

from keys.limiter.buckets import Away, Buckets

logger = logging.getLogger(__name__)

PROBE_SECONDS = 1.0
"""How often a Redis that is away is looked for; no request waits for that."""

COMPLAINT_SECONDS = 60.0
"""How often the log is told that it is away."""


class Presence:
    """Remembers that Redis is away, and looks for it until it is back.

    clock: monotonic seconds.
    """

    def __init__(self, buckets: Buckets, clock: Callable[[], float]) -> None:
        self._buckets = buckets
        self._clock = clock
        self._looking: asyncio.Task[None] | None = None
        self._complained_at = -inf
        self._error: Away | None = None

    @property
    def is_away(self) -> bool:
        """Whether nobody need ask."""
        return self._error is not None

    def lost(self, error: Away) -> None:
        """Take down that somebody has asked in vain."""
        self._error = error
        self.complain()
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look())

    def complain(self) -> None:
        """Tell the log, if it has not been told for a while."""
        now = self._clock()
        if self._error and now >= self._complained_at + COMPLAINT_SECONDS:
            self._complained_at = now
            logger.warning(
                "limits are counted in each process by itself: %s", self._error
            )

    async def stop(self) -> None:
        """Look no more."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)

    async def _look(self) -> None:
        while self._error is not None:
            await asyncio.sleep(PROBE_SECONDS)
            try:
                await self._buckets.look()
            except Away as error:
                self._error = error
            else:
                self._error = None
