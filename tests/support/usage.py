"""Rows of usage as the meter writes them, by minute, hour and day."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import zip_longest
from typing import Any

from django.utils import timezone

from keys.charts.windows import floor
from keys.models import ApiKey, Span, UsageBucket, UsageTotal
from networks.models import Network


def add_usage(
    api_key: ApiKey, network: Network, at: datetime | None = None, **fields: Any
) -> None:
    """Add calls of about a millisecond to a key and to all keys together.

    at: time of the calls, by default now. fields: values that differ from the default.
    """
    names = {
        name: fields.pop(name, usual)
        for name, usual in (("method", "eth_call"), ("outcome", "ok"))
    }
    calls = fields.get("calls", 2)
    counts = {
        "calls": calls,
        "credits": 20 * calls,
        "duration_us": 1000 * calls,
        "bytes_out": 100,
        "latencies": [0] * 10 + [calls],
    } | fields
    for span in Span:
        start = floor(at or timezone.now(), timedelta(seconds=span))
        row = {"network": network, "span": span, "start": start, **names}
        _add(UsageBucket, {"api_key": api_key, **row}, counts)
        _add(UsageTotal, row, counts)


def _add(
    model: type[UsageBucket | UsageTotal], row: dict[str, Any], counts: dict[str, Any]
) -> None:
    found, is_new = model.objects.get_or_create(**row, defaults=counts)
    if is_new:
        return
    for name, more in counts.items():
        known = getattr(found, name)
        if name == "latencies":
            pairs = zip_longest(known, more, fillvalue=0)
            setattr(found, name, [sum(pair) for pair in pairs])
        else:
            setattr(found, name, known + more)
    found.save()
