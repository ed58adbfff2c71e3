"""The three tiers of usage rows, how long they are kept, and the choice between them.

Each call is counted in the row of its minute, of its hour and of its day. A query has
to select one span, otherwise it counts each call three times.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from keys.charts.windows import floor
from keys.models import Span

KEEP = {Span.MINUTE: timedelta(hours=48), Span.HOUR: timedelta(days=90)}
"""How long rows are kept, by span. Rows of days are kept as long as their key, for
billing."""


def is_kept(span: Span, moment: datetime, now: datetime) -> bool:
    """Return whether all rows of a span since a time are still stored."""
    return span not in KEEP or now - moment <= KEEP[span]


def span_of(since: datetime, until: datetime, longest: Span, now: datetime) -> Span:
    """Return the span of the rows to add up, among those stored since the beginning.

    It is the longest span, up to `longest`, at whose boundaries both ends lie. If there
    is none, it is the shortest stored span. A row counts at the time at which it
    begins.
    """
    kept = [span for span in Span if is_kept(span, since, now)]
    ends = [end for end in (since, until) if end < now]  # nothing has happened later
    exact = [
        span
        for span in kept
        if span <= longest
        and all(floor(end, timedelta(seconds=span)) == end for end in ends)
    ]
    return max(exact) if exact else min(kept)
