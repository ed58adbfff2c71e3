"""The time between two polls of an upstream."""

from __future__ import annotations

import pytest

from nodeapi.follower.pace import Pace


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
