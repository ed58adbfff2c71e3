"""A stretch of time in bins of equal length."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_TICKS = tuple(
    timedelta(minutes=minutes)
    for minutes in (1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440, 2880, 7200)
)
"""Distances that people count in; multiples of them begin at UTC's midnight."""

MAX_TICKS = 8


@dataclass(frozen=True, slots=True)
class Window:
    """`count` bins of `step` each; the first begins at `start`, of UTC."""

    start: datetime
    step: timedelta
    count: int

    @classmethod
    def until(cls, now: datetime, step: timedelta, count: int) -> Window:
        """Return the window whose last bin is the one that is under way."""
        return cls(floor(now, step) - (count - 1) * step, step, count)

    @property
    def end(self) -> datetime:
        """When the last bin is over."""
        return self.moment(self.count)

    def moment(self, number: int) -> datetime:
        """Return when a bin begins."""
        return self.start + number * self.step

    def place(self, moment: datetime) -> int:
        """Return the bin that a moment is in; outside of the window it is none."""
        return (moment - self.start) // self.step

    def words(self, number: int) -> str:
        """Return from when to when a bin is."""
        first, last = self.moment(number), self.moment(number + 1)
        if self.step >= timedelta(days=1):
            return f"{first:%Y-%m-%d}"
        return f"{first:%Y-%m-%d %H:%M}–{last:%H:%M}"

    def ticks(self) -> Iterator[tuple[float, str]]:
        """Yield places, in bins, with what is written there."""
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
    """Return the last multiple of a step, from UTC's midnight on, up to a moment."""
    return moment - (moment - _EPOCH) % step


def _label(moment: datetime) -> str:
    """Return the time, or at midnight the day that begins."""
    is_midnight = (moment.hour, moment.minute) == (0, 0)
    return f"{moment.day} {moment:%b}" if is_midnight else f"{moment:%H:%M}"
