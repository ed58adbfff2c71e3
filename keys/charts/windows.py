"""Time windows that are divided into bins of equal length."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_TICKS = tuple(
    timedelta(minutes=minutes)
    for minutes in (1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440, 2880, 7200)
)
"""Possible distances between ticks. Their multiples are counted from midnight UTC."""

MAX_TICKS = 8


@dataclass(frozen=True, slots=True)
class Window:
    """`count` bins of length `step`. The first one begins at `start` (UTC)."""

    start: datetime
    step: timedelta
    count: int

    @classmethod
    def until(cls, now: datetime, step: timedelta, count: int) -> Window:
        """Return the window that ends with the current, incomplete bin."""
        return cls(floor(now, step) - (count - 1) * step, step, count)

    @property
    def end(self) -> datetime:
        """End of the last bin."""
        return self.moment(self.count)

    def moment(self, number: int) -> datetime:
        """Return the time at which a bin begins."""
        return self.start + number * self.step

    def place(self, moment: datetime) -> int:
        """Return the index of the bin that contains a time.

        It is out of range outside the window.
        """
        return (moment - self.start) // self.step

    def words(self, number: int) -> str:
        """Return the period of a bin as text."""
        first, last = self.moment(number), self.moment(number + 1)
        if self.step >= timedelta(days=1):
            return f"{first:%Y-%m-%d}"
        return f"{first:%Y-%m-%d %H:%M}–{last:%H:%M}"

    def ticks(self) -> Iterator[tuple[float, str]]:
        """Yield ticks as pairs of position, in bins, and label."""
        length = self.count * self.step
        every = next(
            (tick for tick in _TICKS if length / tick <= MAX_TICKS), _TICKS[-1]
        )
        every = max(every, self.step)
        moment = floor(self.start, every)
        while moment < self.end:
            if moment >= self.start:
                yield (moment - self.start) / self.step, _label(moment)
            moment += every


def floor(moment: datetime, step: timedelta) -> datetime:
    """Round a time down to a multiple of a step, counted from midnight UTC."""
    return moment - (moment - _EPOCH) % step


def _label(moment: datetime) -> str:
    """Return the time of day, or the date at midnight."""
    is_midnight = (moment.hour, moment.minute) == (0, 0)
    return f"{moment.day} {moment:%b}" if is_midnight else f"{moment:%H:%M}"
