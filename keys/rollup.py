"""Many small sums of usage made few large ones, as they grow old."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import connection

from keys.models import Span

KEEP_MINUTES = timedelta(hours=48)
KEEP_HOURS = timedelta(days=90)

BATCH_ROWS = 10_000
"""Rows of one transaction, which takes a fraction of a second and holds no one up."""

_MERGE = """
    WITH old AS (
        DELETE FROM keys_usagebucket WHERE id IN (
            SELECT id FROM keys_usagebucket
            WHERE span = %(span)s AND start < %(before)s
            ORDER BY start LIMIT %(limit)s FOR UPDATE SKIP LOCKED)
        RETURNING *
    ), merged AS (
        INSERT INTO keys_usagebucket AS u (api_key_id, span, start, network_id, method,
            outcome, calls, credits, duration_us, bytes_out, latencies)
        SELECT api_key_id, %(into)s, date_trunc(%(unit)s, start, 'UTC'), network_id,
            method, outcome, sum(calls), sum(credits), sum(duration_us),
            sum(bytes_out), keys_sum(latencies)
        FROM old GROUP BY 1, 3, 4, 5, 6 ORDER BY 1, 3, 4, 5, 6
        ON CONFLICT (api_key_id, span, start, network_id, method, outcome)
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


def roll_up(now: datetime) -> int:
    """Make hours of old minutes and days of old hours; return how many rows that took.

    A row is removed by the statement that adds it elsewhere. So it may be stopped at
    any time and run again, or twice at once.
    """
    return _merge(Span.MINUTE, Span.HOUR, "hour", now - KEEP_MINUTES) + _merge(
        Span.HOUR, Span.DAY, "day", now - KEEP_HOURS
    )


def _merge(span: Span, into: Span, unit: str, before: datetime) -> int:
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
            cursor.execute(_MERGE, parameters)
            removed, _ = cursor.fetchone()
        if not removed:
            return merged
        merged += removed
