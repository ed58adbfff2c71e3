"""The health of one upstream, with its backoff and score, and the pace of its polls.

The time between two polls is a fifth of the block time, from 0.2 to 2 seconds.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace

FIRST_PAUSE_SECONDS = 0.25
"""Pause after the first failure. Each further failure doubles it."""

LONGEST_PAUSE_SECONDS = 30.0

LONGEST_UNREACHABLE_SECONDS = 2.0
"""Longest pause while no connection can be opened. An attempt costs the upstream nothing,
and following continues soon after its return."""

LATENCY_WEIGHT = 0.2
"""Share of the newest request in the average latency."""

UNKNOWN_LATENCY_SECONDS = 1.0
"""Assumed latency of an upstream that has not responded yet."""

LAG_SECONDS = 0.5
"""Latency that has the same effect on the score as one missing block."""

SHORTEST_POLL_SECONDS = 0.2
LONGEST_POLL_SECONDS = 2.0
POLLS_PER_BLOCK = 5
HEADS_KEPT = 16

NOTIFIED_FACTOR = 5
"""Factor by which polls are rarer with a subscription. They only have to detect that the
subscription is silent."""


@dataclass(frozen=True, slots=True)
class Health:
    """The results of the requests to one upstream so far.

    Times are seconds of a monotonic clock, which the caller passes as `now`.
    """

    requests: int = 0
    errors: int = 0
    """Number of requests that failed, since the process started."""
    failures: int = 0
    """Number of failures since the last success."""
    latency_seconds: float | None = None
    """Exponentially weighted average over successful requests, None before the first."""
    backing_off_until: float = 0.0
    last_error: str = ""

    def succeeded(self, latency_seconds: float, requests: int = 1) -> Health:
        """Return the health after successful requests. They end the backoff.

        latency_seconds: time from sending the requests to the end of the response.
        """
        average = self.latency_seconds
        if average is None:
            average = latency_seconds
        return replace(
            self,
            requests=self.requests + requests,
            failures=0,
            latency_seconds=average + LATENCY_WEIGHT * (latency_seconds - average),
            backing_off_until=0.0,
        )

    def failed(
        self, now: float, reason: str, jitter: float, *, is_unreachable: bool = False
    ) -> Health:
        """Return the health after a failed request.

        reason: a text without secrets, which staff can read.
        jitter: random number from 0 to 1. The pause lasts from one half to the whole of
            0.25 s times two to the power of the preceding failures, up to 30 s.
        is_unreachable: whether no connection could be opened. The pause is then at most
            2 s.
        """
        longest = LONGEST_PAUSE_SECONDS
        if is_unreachable:
            longest = LONGEST_UNREACHABLE_SECONDS
        # The exponent is limited, because a float can't hold 2 ** 1024.
        pause = min(FIRST_PAUSE_SECONDS * 2 ** min(self.failures, 20), longest)
        return replace(
            self,
            requests=self.requests + 1,
            errors=self.errors + 1,
            failures=self.failures + 1,
            backing_off_until=now + pause * (1 + jitter) / 2,
            last_error=reason,
        )

    def is_backing_off(self, now: float) -> bool:
        """Return whether requests should wait because of earlier failures."""
        return now < self.backing_off_until

    def score(self, lag_blocks: int = 0) -> float:
        """Return a number by which upstreams are sorted. The best one has the lowest.

        lag_blocks: difference between the highest known head and the upstream's.
        """
        latency = self.latency_seconds
        if latency is None:
            latency = UNKNOWN_LATENCY_SECONDS
        return (latency + LAG_SECONDS * max(lag_blocks, 0)) * (1 + self.failures)


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
            interval = SHORTEST_POLL_SECONDS * POLLS_PER_BLOCK
        else:
            (first, since), (last, until) = self._heads[0], self._heads[-1]
            interval = (until - since) / (last - first)
        seconds = min(
            max(interval / POLLS_PER_BLOCK, SHORTEST_POLL_SECONDS), LONGEST_POLL_SECONDS
        )
        return seconds * NOTIFIED_FACTOR if is_notified else seconds
