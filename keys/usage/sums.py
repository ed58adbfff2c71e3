"""Usage over time, of one key or of all keys, added up in the database."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from operator import add
from typing import Any, NamedTuple

from django.db import connection

from keys.charts.windows import Window
from keys.metering.latencies import percentile
from keys.metering.meter import DENIED, LIMITED, OK
from keys.models import ApiKey, Span
from keys.usage.ranges import Range
from networks.models import Network

_BUCKETS = 36
"""Number of buckets of a latency histogram. They reach 19 hours, longer than any call.
Sums of single elements take a third of the time of sums of arrays. Sums of floats,
which are exact up to 2^53, take half of the time of sums of numeric values."""

_LATENCIES = ", ".join(
    f"coalesce(sum(latencies[{number}]::float8), 0)::int8"
    for number in range(1, _BUCKETS + 1)
)

_SUMS = f"""
    SELECT date_bin(%(step)s, start, %(start)s) AS bin, {{by}} AS name, outcome,
        sum(calls)::int8, sum(credits)::int8, sum(bytes_out)::int8, ARRAY[{_LATENCIES}]
    FROM {{table}}
    WHERE {{key}} span = %(span)s AND start >= %(start)s AND start < %(end)s
    GROUP BY 1, 2, 3
"""


class Dimension(StrEnum):
    """The dimension by which usage is grouped."""

    METHOD = "method"
    NETWORK = "network"
    OUTCOME = "outcome"


_COLUMNS = {
    Dimension.METHOD: "method",
    Dimension.NETWORK: "network_id::text",
    Dimension.OUTCOME: "outcome",
}


class _Row(NamedTuple):
    """Total of the calls with the same properties, in one bin."""

    start: datetime
    name: str
    outcome: str
    calls: int
    credits: int
    bytes_out: int
    latencies: list[int]


@dataclass(slots=True)
class Counts:
    """Totals of calls and of their costs."""

    calls: int = 0
    failed: int = 0
    """Number of failed calls, for any reason."""
    credits: int = 0
    bytes_out: int = 0

    def add(self, row: _Row) -> None:
        """Add the calls of a row."""
        self.calls += row.calls
        self.credits += row.credits
        self.bytes_out += row.bytes_out
        if row.outcome != OK:
            self.failed += row.calls


def _counts() -> defaultdict[Any, Counts]:
    return defaultdict(Counts)


@dataclass(slots=True)
class Usage:
    """Usage within a window, grouped by one dimension."""

    window: Window
    total: Counts = field(default_factory=Counts)
    names: dict[str, Counts] = field(default_factory=_counts)
    """Totals by the value of the dimension."""
    outcomes: dict[str, Counts] = field(default_factory=_counts)
    cells: dict[tuple[str, int], Counts] = field(default_factory=_counts)
    """Totals by value of the dimension and index of the bin."""
    latencies: dict[int, list[int]] = field(default_factory=dict)
    """Histograms by index of the bin. Rejected calls are not included, because they
    would understate the latency. See `keys.metering.latencies`."""

    def add(self, place: int, row: _Row) -> None:
        """Add the calls of a row to a bin."""
        self.total.add(row)
        self.names[row.name].add(row)
        self.outcomes[row.outcome].add(row)
        self.cells[row.name, place].add(row)
        if row.outcome not in (DENIED, LIMITED):
            known = self.latencies.get(place)
            self.latencies[place] = _sum(known, row.latencies)

    def latency(self, share: float, place: int | None = None) -> float | None:
        """Return a quantile of the latencies in microseconds, or None without calls.

        share: of the quantile, such as 0.99.
        place: index of the bin, or None for the whole window.
        """
        if place is not None:
            return percentile(self.latencies.get(place, []), share)
        together: list[int] | None = None
        for latencies in self.latencies.values():
            together = _sum(together, latencies)
        return percentile(together or [], share)


def _sum(known: list[int] | None, more: list[int]) -> list[int]:
    return more if known is None else list(map(add, known, more))


def usage(chosen: Range, now: datetime, by: Dimension, api_key: ApiKey | None) -> Usage:
    """Return the usage of a key within a range, or of all keys."""
    found = Usage(chosen.window(now))
    for row in _rows(found.window, chosen.span, by, api_key):
        found.add(found.window.place(row.start), row)
    return found


def _rows(
    window: Window, span: Span, by: Dimension, api_key: ApiKey | None
) -> Iterator[_Row]:
    table, key = "keys_usagetotal", ""
    if api_key is not None:
        table, key = "keys_usagebucket", "api_key_id = %(key)s AND"
    statement = _SUMS.format(by=_COLUMNS[by], table=table, key=key)
    values: dict[str, Any] = {
        "key": api_key.pk if api_key is not None else None,
        "span": int(span),
        "start": window.start,
        "end": window.end,
        "step": window.step,
    }
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        rows = cursor.fetchall()
    slugs: dict[str, str] = {}
    if by is Dimension.NETWORK:
        slugs = {
            str(pk): slug for pk, slug in Network.objects.values_list("pk", "slug")
        }
    for start, name, *rest in rows:
        yield _Row(start, slugs.get(name, name), *rest)
