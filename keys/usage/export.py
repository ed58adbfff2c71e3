"""Usage as CSV, a line for each row that is stored."""

from __future__ import annotations

import csv
import io
from datetime import UTC

from keys.charts.windows import Window
from keys.models import ApiKey, Span, UsageBucket

MAX_ROWS = 100_000
"""The latest ones; some 8 MB. A key that is used for everything has a third of them in 30
days."""

_HEADS = [
    *("start", "span_seconds", "network", "method", "outcome"),
    *("calls", "credits", "duration_ms", "bytes_out"),
]


def usage_csv(api_key: ApiKey, window: Window) -> str:
    """Return a key's usage within a window, the latest first."""
    rows = UsageBucket.objects.filter(
        api_key=api_key,
        span__in=Span.values,
        start__gte=window.start,
        start__lt=window.end,
    )
    columns = (
        *("start", "span", "network__slug", "method", "outcome"),
        *("calls", "credits", "duration_us", "bytes_out"),
    )
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\r\n")  # RFC 4180
    lines.writerow(_HEADS)
    latest = rows.order_by("-start", "network", "method", "outcome")
    for start, *names, calls, credits, duration_us, size in latest.values_list(
        *columns
    )[:MAX_ROWS]:
        moment = f"{start.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
        milliseconds = f"{duration_us / 1000:.3f}"
        lines.writerow([moment, *names, calls, credits, milliseconds, size])
    return text.getvalue()
