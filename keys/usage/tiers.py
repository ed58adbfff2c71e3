"""The three tiers of usage: how long each is kept, and which one answers a question.

Each call is in the row of its minute, in that of its hour and in that of its day. Whoever
adds rows up names one span, or counts calls thrice.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from keys.charts.windows import floor
from keys.models import Span

KEEP = {Span.MINUTE: timedelta(hours=48), Span.HOUR: timedelta(days=90)}
"""Days stay as long as their key: bills are made of them."""


def is_kept(span: Span, moment: datetime, now: datetime) -> bool:
    """Return whether rows from a moment on are all there."""
    return span not in KEEP or now - moment <= KEEP[span]


def span_of(since: datetime, until: datetime, longest: Span, now: datetime) -> Span:
    """Return the span whose rows to add up, of those that are kept since the beginning.

    It is the longest at whose beginnings both ends lie, up to `longest`. If there is
    none, it is the shortest: a row counts where it begins.
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
