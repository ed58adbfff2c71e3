"""Sums of usage, grouped as the caller likes, a page at a time."""

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
from keys.latencies import percentile
from keys.models import Span

RESOLUTIONS = {span.label.lower(): span for span in Span}
"""By name: how long the rows are that are added up."""

INTERVALS = RESOLUTIONS | {"month": Span.DAY}
"""Of UTC, and the longest rows that can be told apart by them."""

GROUPS = {
    "customer": ("a.owner_id", "int8"),
    "key": ("u.api_key_id", "int8"),
    "network": ("n.slug", "text"),
    "method": ("u.method", "text"),
    "outcome": ("u.outcome", "text"),
}
"""By what usage can be told apart: its column, and that one's type."""

TOTALS = ("calls", "credits", "duration_us", "bytes_out")

PATIENCE_SECONDS = 10
"""How long the database may take for a page."""


@dataclass(frozen=True, slots=True)
class Question:
    """What sums are asked for.

    since, until: the first is included, the second is not.
    span: of the rows that are added up; they count where they begin.
    conditions: values that columns must have, by the names of GROUPS.
    groups: names of GROUPS, in the order of the answer.
    interval: one of INTERVALS, "" for the whole time.
    after: the last group of the page before.
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
        """Of what tells one sum from another."""
        return [*(["start"] if self.interval else []), *self.groups]


def read_page(question: Question, size: int) -> tuple[list[dict[str, Any]], str]:
    """Return sums, and the cursor of the next page, "" for the last.

    Raises: OperationalError when it takes too long.
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
    """Return the group that a cursor names. Raises: ValueError."""
    try:
        values = orjson.loads(base64.urlsafe_b64decode(text.encode()))
    except (binascii.Error, UnicodeEncodeError, orjson.JSONDecodeError):
        raise ValueError("This is no cursor of this list.") from None
    if not isinstance(values, list) or len(values) != len(names):
        raise ValueError("This is no cursor of this list.")
    return tuple(_typed(name, value) for name, value in zip(names, values, strict=True))


def _typed(name: str, value: object) -> Any:
    """Return a value of a cursor as the database takes it. Raises: ValueError."""
    if name == "start":
        return datetime.fromisoformat(str(value))
    if GROUPS[name][1] == "int8":
        is_sound = type(value) is int and abs(value) <= MAX_NUMBER
    else:
        is_sound = type(value) is str and "\0" not in value
    if not is_sound:
        raise ValueError("This is no cursor of this list.")
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
