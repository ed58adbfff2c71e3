"""How often to poll upstreams: a fifth of the block time, from 0.2 to 2 seconds."""

from __future__ import annotations

from collections import deque

SHORTEST_SECONDS = 0.2
LONGEST_SECONDS = 2.0
POLLS_PER_BLOCK = 5
HEADS_KEPT = 16

NOTIFIED_FACTOR = 5
"""Factor by which polls are rarer with a subscription. They only have to detect that the
subscription is silent."""


class Pace:
    """The block time, measured from the timestamps of the newest heads."""

    def __init__(self) -> None:
        self._heads: deque[tuple[int, int]] = deque(maxlen=HEADS_KEPT)

    def head(self, number: int, timestamp: int) -> None:
        """Add a head. A head that is not higher than the last one resets the measurement."""
        if self._heads and number <= self._heads[-1][0]:
            if (number, timestamp) == self._heads[-1]:
                return
            self._heads.clear()
        self._heads.append((number, timestamp))

    def seconds(self, *, is_notified: bool) -> float:
        """Return the time between two polls.

        is_notified: whether a subscription is expected to announce new heads.
        """
        if len(self._heads) < 2:
            interval = SHORTEST_SECONDS * POLLS_PER_BLOCK
        else:
            (first, since), (last, until) = self._heads[0], self._heads[-1]
            interval = (until - since) / (last - first)
        seconds = min(
            max(interval / POLLS_PER_BLOCK, SHORTEST_SECONDS), LONGEST_SECONDS
        )
        return seconds * NOTIFIED_FACTOR if is_notified else seconds
