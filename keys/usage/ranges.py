"""Ranges of time that users can select for usage."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from keys.charts.windows import Window
from keys.models import Span


@dataclass(frozen=True, slots=True)
class Range:
    """A range of time that ends now."""

    name: str
    """Its identifier in URLs."""
    label: str
    step: timedelta
    """Length of a bin."""
    count: int
    span: Span
    """Span of the stored rows that are added up: the longest that fits into the bins.
    """

    def window(self, now: datetime) -> Window:
        """Return the bins until now. The last bin is incomplete."""
        return Window.until(now, self.step, self.count)


RANGES = {
    each.name: each
    for each in (
        Range("15m", "15 minutes", timedelta(minutes=1), 15, Span.MINUTE),
        Range("1h", "1 hour", timedelta(minutes=1), 60, Span.MINUTE),
        Range("24h", "24 hours", timedelta(hours=1), 24, Span.HOUR),
        Range("7d", "7 days", timedelta(hours=3), 56, Span.HOUR),
        Range("30d", "30 days", timedelta(days=1), 30, Span.DAY),
    )
}

DEFAULT = "24h"
