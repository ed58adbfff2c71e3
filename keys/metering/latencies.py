"""Histograms of call durations, in buckets that double in width.

Histograms are added bucket by bucket, so those of several processes can be combined.
Bucket 0 counts calls below 1 µs, bucket i those from 2^(i-1) to 2^i µs.
"""

from __future__ import annotations

from collections.abc import Sequence

BUCKETS = 64
"""More than any duration in microseconds has bits."""


def percentile(latencies: Sequence[int], share: float) -> float | None:
    """Return a percentile of the durations in microseconds, or None without calls.

    latencies: number of calls in each bucket.
    share: 0.95 for the 95th percentile.

    Durations are assumed to be spread evenly within a bucket, so the result is wrong by
    a factor of 2 at most.
    """
    left = share * sum(latencies)
    if not any(latencies):
        return None
    for number, calls in enumerate(latencies):
        if calls and left <= calls:
            low, high = (1 << number) >> 1, 1 << number
            return low + (high - low) * left / calls
        left -= calls
    return float(1 << (len(latencies) - 1))
