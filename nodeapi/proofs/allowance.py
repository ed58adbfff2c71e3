"""What one request may fetch from upstreams in total."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from nodeapi.errors.proofs import TooMuchToProve

REQUEST_KEYS = 8192
"""Accounts and slots that are fetched for one request, with all calls of a batch."""
REQUEST_SECONDS = 60.0
"""Time from the first fetch of a request until it ends."""


class Allowance:
    """The accounts and slots that may still be fetched for a request, and until when."""

    def __init__(self) -> None:
        self._keys = REQUEST_KEYS
        self._deadline: float | None = None

    @asynccontextmanager
    async def fetch(self, keys: int) -> AsyncIterator[None]:
        """Allow the fetch of a number of keys in a `with` block.

        Raises: TooMuchToProve, also if the block takes too long.
        """
        if self._deadline is None:
            self._deadline = asyncio.get_running_loop().time() + REQUEST_SECONDS
        if keys > self._keys:
            raise TooMuchToProve
        self._keys -= keys
        try:
            async with asyncio.timeout_at(self._deadline):
                yield
        except TimeoutError:
            raise TooMuchToProve from None
