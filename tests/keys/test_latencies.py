from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keys.metering.latencies import BUCKETS, percentile

durations = st.lists(st.integers(0, 10**9), min_size=1)


def counted(microseconds):
    latencies = [0] * BUCKETS
    for duration in microseconds:
        latencies[duration.bit_length()] += 1
    return latencies


@given(durations, st.sampled_from([0.5, 0.95, 0.99]))
def test_percentile_is_right_within_a_factor_of_two(microseconds, share):
    place = max(0, -int(-share * len(microseconds) // 1) - 1)
    exact = sorted(microseconds)[place]
    estimate = percentile(counted(microseconds), share)
    assert exact / 2 <= estimate <= max(1, 2 * exact)


def test_calls_are_spread_within_their_bucket():
    assert percentile([0, 0, 0, 0, 100], 0.5) == 12
    assert percentile([0, 0, 0, 50, 50], 0.95) == pytest.approx(15.2)


def test_nothing_has_no_percentile():
    assert percentile([], 0.5) is None
    assert percentile([0] * 5, 0.5) is None
