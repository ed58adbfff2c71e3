"""Backoff, latency, score and pace of an upstream."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeapi.follower.health import (
    FIRST_PAUSE_SECONDS,
    LONGEST_PAUSE_SECONDS,
    LONGEST_UNREACHABLE_SECONDS,
    Health,
    Pace,
)

shares = st.floats(0, 1)
latencies = st.floats(0.0001, 60)


def failing(count: int, jitter: float = 1.0) -> Health:
    health = Health()
    for _ in range(count):
        health = health.failed(100.0, "timeout", jitter)
    return health


@given(st.integers(1, 2000), shares)
def test_the_pause_doubles_up_to_a_limit(count: int, jitter: float) -> None:
    health = failing(count, jitter)
    whole = min(FIRST_PAUSE_SECONDS * 2.0 ** min(count - 1, 30), LONGEST_PAUSE_SECONDS)
    pause = health.backing_off_until - 100.0
    assert whole / 2 - 1e-6 <= pause <= whole + 1e-6
    assert health.is_backing_off(100.0)
    assert not health.is_backing_off(100.0 + whole + 1e-6)
    assert (health.requests, health.errors, health.failures) == (count, count, count)


@given(st.integers(1, 2000), shares)
def test_an_unreachable_upstream_is_asked_again_soon(count: int, jitter: float) -> None:
    health = failing(count).failed(100.0, "refused", jitter, is_unreachable=True)
    assert health.backing_off_until <= 100.0 + LONGEST_UNREACHABLE_SECONDS


@given(st.integers(0, 50), latencies)
def test_a_success_ends_the_backoff(count: int, latency: float) -> None:
    health = failing(count).succeeded(latency)
    assert not health.is_backing_off(0.0)
    assert health.failures == 0
    assert health.errors == count
    assert health.last_error == ("timeout" if count else "")


@given(st.lists(latencies, min_size=1))
def test_the_average_lies_within_the_latencies(found: list[float]) -> None:
    health = Health()
    for latency in found:
        health = health.succeeded(latency)
    assert health.latency_seconds is not None
    assert min(found) - 1e-9 <= health.latency_seconds <= max(found) + 1e-9


def test_the_average_follows_a_change() -> None:
    health = Health().succeeded(0.01)
    for _ in range(30):
        health = health.succeeded(1.0)
    assert health.latency_seconds is not None
    assert health.latency_seconds > 0.99


@given(latencies, latencies, st.integers(0, 1000))
def test_failures_lag_and_latency_make_the_score_worse(
    latency: float, more: float, lag: int
) -> None:
    health = Health().succeeded(latency)
    assert Health().succeeded(latency + more).score(lag) > health.score(lag)
    assert health.score(lag + 1) > health.score(lag)
    assert health.failed(0.0, "", 0.5).score(lag) > health.score(lag)


# The time between two polls


def seconds(*heads: tuple[int, int], is_notified: bool = False) -> float:
    pace = Pace()
    for number, timestamp in heads:
        pace.head(number, timestamp)
    return pace.seconds(is_notified=is_notified)


@pytest.mark.parametrize(
    ("block_time", "wanted"), [(0, 0.2), (1, 0.2), (5, 1.0), (12, 2.0), (600, 2.0)]
)
def test_a_fifth_of_the_block_time_within_limits(
    block_time: int, wanted: float
) -> None:
    assert seconds(*((n, n * block_time) for n in range(1, 40))) == wanted


def test_skipped_heads_do_not_change_the_block_time() -> None:
    assert seconds((1, 0), (4, 15), (5, 20), (9, 40)) == 1.0


def test_a_new_block_time_is_noticed() -> None:
    slow = [(n, n * 12) for n in range(20)]
    quick = [(20 + n, 240 + n) for n in range(20)]
    assert seconds(*slow, *quick) == 0.2


def test_a_reorganisation_starts_afresh() -> None:
    assert seconds((1, 0), (2, 50), (2, 51)) == 0.2


def test_notified_upstreams_are_looked_at_less_often() -> None:
    assert seconds((1, 0), (2, 12), is_notified=True) == 10.0
