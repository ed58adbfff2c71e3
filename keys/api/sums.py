"""Totals of usage, grouped by columns and intervals, with cursor pagination."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson
from django.db import connection, transaction

from keys.api.filters import MAX_NUMBER
from keys.metering.latencies import percentile
from keys.models import Span

RESOLUTIONS = {span.label.lower(): span for span in Span}
"""The spans of stored usage rows, by name."""

INTERVALS = RESOLUTIONS | {"month": Span.DAY}
"""Intervals in UTC, each with the longest span of rows that can be grouped by it."""

GROUPS = {
    "customer": ("a.owner_id", "int8"),
    "key": ("u.api_key_id", "int8"),
    "network": ("n.slug", "text"),
    "method": ("u.method", "text"),
    "outcome": ("u.outcome", "text"),
}
"""Columns to group by: name → SQL expression and type."""

TOTALS = ("calls", "credits", "duration_us", "bytes_out")

PATIENCE_SECONDS = 10
"""Time limit of the database query for one page."""


@dataclass(frozen=True, slots=True)
class Question:
    """A query for totals of usage.

    since, until: the range of time; `until` is not included.
    span: of the stored rows to add up. A row counts at the time at which it begins.
    conditions: name in GROUPS → required value.
    groups: names in GROUPS, in the order of the response.
    interval: one of INTERVALS, or "" for the whole range.
    after: the last group of the previous page.
    """

    since: datetime
    until: datetime
    span: Span
    conditions: dict[str, int | str]
    groups: tuple[str, ...] = ()
    interval: str = ""
    after: tuple[Any, ...] = ()

    @property
    def names(self) -> list[str]:
        """Names of the values that identify a group."""
        return [*(["start"] if self.interval else []), *self.groups]


def read_page(question: Question, size: int) -> tuple[list[dict[str, Any]], str]:
    """Return a page of totals, and the cursor of the next page ("" on the last page).

    Raises: OperationalError if the query exceeds PATIENCE_SECONDS.
    """
    statement, values = _statement(question)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL statement_timeout = '{PATIENCE_SECONDS}s'")
        cursor.execute(statement, [*values, size + 1])
        rows = cursor.fetchall()
    sums = [_sum(question.names, row) for row in rows[:size]]
    if len(rows) <= size:
        return sums, ""
    last = [sums[-1][name] for name in question.names]
    return sums, base64.urlsafe_b64encode(orjson.dumps(last)).decode()


def read_cursor(text: str, names: Sequence[str]) -> tuple[Any, ...]:
    """Return the group that a cursor encodes. Raises: ValueError if it is malformed."""
    try:
        values = orjson.loads(base64.urlsafe_b64decode(text.encode()))
    except (binascii.Error, UnicodeEncodeError, orjson.JSONDecodeError):
        raise ValueError("This is not a cursor of this list.") from None
    if not isinstance(values, list) or len(values) != len(names):
        raise ValueError("This is not a cursor of this list.")
    return tuple(_typed(name, value) for name, value in zip(names, values, strict=True))


def _typed(name: str, value: object) -> Any:
    """Convert a cursor's value to the column's type. Raises: ValueError."""
    if name == "start":
        return datetime.fromisoformat(str(value))
    if GROUPS[name][1] == "int8":
        is_sound = type(value) is int and abs(value) <= MAX_NUMBER
    else:
        is_sound = type(value) is str and "\0" not in value
    if not is_sound:
        raise ValueError("This is not a cursor of this list.")
    return value


def _statement(question: Question) -> tuple[str, list[Any]]:
    columns = [GROUPS[name][0] for name in question.groups]
    types = [GROUPS[name][1] for name in question.groups]
    if question.interval:
        columns.insert(0, f"date_trunc('{question.interval}', u.start, 'UTC')")
        types.insert(0, "timestamptz")
    where = ["u.span = %s", "u.start >= %s", "u.start < %s"]
    values: list[Any] = [int(question.span), question.since, question.until]
    for name, value in question.conditions.items():
        where.append(f"{GROUPS[name][0]} = %s")
        values.append(value)
    if question.after:
        marks = ", ".join(f"%s::{kind}" for kind in types)
        where.append(f"({', '.join(columns)}) > ({marks})")
        values.extend(question.after)
    group = ", ".join(map(str, range(1, len(columns) + 1)))
    totals = [f"coalesce(sum(u.{total}), 0)::int8" for total in TOTALS]
    statement = f"""
        SELECT {", ".join([*columns, *totals, "keys_sum(u.latencies)"])}
        FROM keys_usagebucket u
        JOIN keys_apikey a ON a.id = u.api_key_id
        JOIN networks_network n ON n.id = u.network_id
        WHERE {" AND ".join(where)}
        {f"GROUP BY {group} ORDER BY {group}" if columns else ""}
        LIMIT %s
    """
    return statement, values


def _sum(names: Iterable[str], row: Sequence[Any]) -> dict[str, Any]:
    named = [*names, *TOTALS]
    latencies = row[len(named)] or []
    made = dict(zip(named, row, strict=False))
    for share in (50, 95, 99):
        micros = percentile(latencies, share / 100)
        made[f"latency_p{share}_us"] = None if micros is None else round(micros)
    return made
