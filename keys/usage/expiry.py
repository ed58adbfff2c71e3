"""Deletion of old usage rows."""

from __future__ import annotations

from datetime import date, datetime, timedelta

from django.db import connection

from keys.usage.tiers import KEEP

KEEP_DAILY = timedelta(days=90)
"""How long DailyUse rows are kept. UsageBucket rows of days are kept longer."""

BATCH_ROWS = 10_000
"""Rows deleted in one transaction. It takes a fraction of a second, to keep locks
short."""

_REMOVE = """
    DELETE FROM {table} WHERE id IN (
        SELECT id FROM {table} WHERE {oldest} LIMIT %s FOR UPDATE SKIP LOCKED)
"""

_OF_TIER = "span = %s AND start < %s ORDER BY start"
_OF_KEY = "day < %s ORDER BY day"


def expire(now: datetime) -> int:
    """Delete expired rows, and return their number.

    It can be interrupted, repeated and run concurrently.
    """
    removed = _remove("keys_dailyuse", _OF_KEY, (now - KEEP_DAILY).date())
    for span, keep in KEEP.items():
        for table in ("keys_usagebucket", "keys_usagetotal"):
            removed += _remove(table, _OF_TIER, int(span), now - keep)
    return removed


def _remove(table: str, oldest: str, *values: int | date) -> int:
    statement = _REMOVE.format(table=table, oldest=oldest)
    removed = 0
    with connection.cursor() as cursor:
        while True:
            cursor.execute(statement, [*values, BATCH_ROWS])
            if not cursor.rowcount:
                return removed
            removed += cursor.rowcount
