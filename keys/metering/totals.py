"""Totals of a process since its start, over all keys, for operators.

Statistics for customers are counted by key and stored in the database. See
`keys.metering.meter`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import add

Measured = tuple[int, str, str]
"""Network, method, outcome."""

Counter = Sequence[int]
"""Credits, microseconds, bytes, and a histogram; see `keys.metering.latencies`."""


class Totals:
    """Sums of counters that only grow."""

    def __init__(self) -> None:
        self._sums: dict[Measured, Counter] = {}

    def add(self, counters: Mapping[tuple[int, int, int, str, str], Counter]) -> None:
        """Add counters. Their keys are (key version, key, network, method, outcome)."""
        _add(self._sums, counters)

    def so_far(
        self, counters: Mapping[tuple[int, int, int, str, str], Counter]
    ) -> dict[Measured, Counter]:
        """Return the sums, including `counters`, which are not added permanently."""
        sums = dict(self._sums)
        _add(sums, counters)
        return sums


def _add(
    sums: dict[Measured, Counter],
    counters: Mapping[tuple[int, int, int, str, str], Counter],
) -> None:
    for (_, _, network_id, method, outcome), counter in counters.items():
        measured = network_id, method, outcome
        known = sums.get(measured)
        sums[measured] = list(map(add, known, counter) if known else counter)
