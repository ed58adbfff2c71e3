"""Turns: rounds within a time budget, in which the compared sides alternate."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator

from bench.racers import Lap, Racer

Say = Callable[[str], None]

LEAST_ROUNDS = 3
"""A median of fewer rounds says little."""

_deadlines: list[float] = []
"""Contains the `time.monotonic` at which this process has used up its budget."""


def set_budget(seconds: float) -> None:
    """Begin the time budget of this process."""
    _deadlines[:] = [time.monotonic() + seconds]


def rounds(most: int) -> Iterator[int]:
    """Yield the numbers of rounds from 1 on: at most `most`.

    There are at least LEAST_ROUNDS, and no more once the budget is used up.
    """
    for number in range(1, most + 1):
        is_late = bool(_deadlines) and time.monotonic() > _deadlines[0]
        if number > LEAST_ROUNDS and is_late:
            say(f"stops after {number - 1} of {most} rounds: the time is used up")
            return
        yield number


def laps(first: Racer, second: Racer, blocks: int, most: int) -> list[tuple[Lap, Lap]]:
    """Let two racers import the same blocks in turns. Return the laps of both."""
    return [(first.run(blocks), second.run(blocks)) for _ in rounds(most)]


def say(text: str) -> None:
    """Print progress to standard error."""
    print(text, file=sys.stderr, flush=True)
