"""Limits for the calls that upstreams answer, for each API key and in total."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from nodeapi.errors.relay import TooManyRelayedCalls

MAX_CALLS = 256
"""Maximum number of relayed calls that a process has in flight."""
MAX_CALLS_OF_KEY = 32
"""Maximum number of relayed calls that an API key has in flight in a process."""


class CallsInFlight:
    """Counts the calls in flight by API key."""

    def __init__(self) -> None:
        self._calls: Counter[int] = Counter()

    @contextmanager
    def hold(self, payer: int) -> Iterator[None]:
        """Count a call while it is in flight.

        payer: the id of the API key. Raises: TooManyRelayedCalls.
        """
        calls = self._calls
        if calls[payer] >= MAX_CALLS_OF_KEY or calls.total() >= MAX_CALLS:
            raise TooManyRelayedCalls
        calls[payer] += 1
        try:
            yield
        finally:
            calls[payer] -= 1
            if not calls[payer]:
                del calls[payer]
