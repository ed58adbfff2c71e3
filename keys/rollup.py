"""Many small sums of usage made few large ones, as they grow old."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import connection

from keys.models import DailyUse, Span

KEEP_MINUTES = timedelta(hours=6)
"""Charts show minutes of the last hour only. A key that is used all day has dozens of rows
in each minute; with two days of them its charts would take a second.
"""

KEEP_TOTAL_MINUTES = timedelta(hours=2)
"""The same of all keys together, of which nobody but the charts asks for minutes."""

KEEP_HOURS = timedelta(days=90)

BATCH_ROWS = 10_000
"""Rows of one transaction, which takes a fraction of a second and holds no one up."""

KEEP_DAILY = timedelta(days=90)
"""What a key was used for on a day, in one row; the usage of that day stays."""

_MERGE = """
    WITH old AS (
        DELETE FROM {table} WHERE id IN (
            SELECT id FROM {table}
            WHERE span = %(span)s AND start < %(before)s
            ORDER BY start LIMIT %(limit)s FOR UPDATE SKIP LOCKED)
        RETURNING *
    ), merged AS (
        INSERT INTO {table} AS u ({key} span, start, network_id, method, outcome,
            calls, credits, duration_us, bytes_out, latencies)
        SELECT {key} %(into)s, date_trunc(%(unit)s, start, 'UTC') AS whole, network_id,
            method, outcome, sum(calls), sum(credits), sum(duration_us),
            sum(bytes_out), keys_sum(latencies)
        FROM old GROUP BY {key} whole, network_id, method, outcome
        ORDER BY {key} whole, network_id, method, outcome
        ON CONFLICT ({key} span, start, network_id, method, outcome)
        DO UPDATE SET
            calls = u.calls + EXCLUDED.calls,
            credits = u.credits + EXCLUDED.credits,
            duration_us = u.duration_us + EXCLUDED.duration_us,
            bytes_out = u.bytes_out + EXCLUDED.bytes_out,
            latencies = keys_add(u.latencies, EXCLUDED.latencies)
        RETURNING 1
    )
    SELECT (SELECT count(*) FROM old), (SELECT count(*) FROM merged)
"""

_BY_KEY = _MERGE.format(table="keys_usagebucket", key="api_key_id,")
_TOGETHER = _MERGE.format(table="keys_usagetotal", key="")


def roll_up(now: datetime) -> int:
    """Make hours of old minutes and days of old hours; return how many rows that took.

    A row is removed by the statement that adds it elsewhere. So it may be stopped at
    any time and run again, or twice at once.
    """
    DailyUse.objects.filter(day__lt=(now - KEEP_DAILY).date()).delete()
    return sum(
        _merge(statement, Span.MINUTE, Span.HOUR, "hour", now - minutes)
        + _merge(statement, Span.HOUR, Span.DAY, "day", now - KEEP_HOURS)
        for statement, minutes in (
            (_BY_KEY, KEEP_MINUTES),
            (_TOGETHER, KEEP_TOTAL_MINUTES),
        )
    )


def _merge(statement: str, span: Span, into: Span, unit: str, before: datetime) -> int:
    parameters: dict[str, int | str | datetime] = {
        "span": int(span),
        "into": int(into),
        "unit": unit,
        "before": before,
        "limit": BATCH_ROWS,
    }
    merged = 0
    while True:
        with connection.cursor() as cursor:
            cursor.execute(statement, parameters)
            removed, _ = cursor.fetchone()
        if not removed:
            return merged
        merged += removed
