"""Deletes entries of the outbox that are older than an hour."""

from __future__ import annotations

from datetime import timedelta

from django.db import connection

KEEP = timedelta(hours=1)
"""How long entries are kept. Processes read them within a second; a subscriber that finds
its next entry deleted reads everything again."""

AT_ONCE = 5_000
"""Entries that one statement deletes, so that no transaction takes long."""

_DELETE = """
    DELETE FROM outbox_entry WHERE (stream, number) IN (
        SELECT stream, number FROM outbox_entry
        WHERE created_at < clock_timestamp() - make_interval(secs => %s)
        LIMIT %s
    )
"""


def prune(keep: timedelta = KEEP) -> int:
    """Delete the entries older than `keep`; return their number.

    Several processes may run it concurrently.
    """
    total = 0
    while True:
        with connection.cursor() as cursor:
            cursor.execute(_DELETE, [keep.total_seconds(), AT_ONCE])
            deleted: int = cursor.rowcount
        total += deleted
        if deleted < AT_ONCE:
            return total
