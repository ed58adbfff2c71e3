"""Each call in a row of its minute, of its hour and of its day, which were one row.

Until now minutes were merged into hours, and hours into days, as they grew old. What is
in minutes is added to their hours, and what is in both to the days, so that each tier is
complete as far back as it goes.

PostgreSQL does it, a day at a time, so that memory is bounded. What is still counted by
processes of the version before is of the latest minutes: only while those are added up do
they have to wait, with what they count in memory. All is one transaction: it happens
once, or not at all.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from django.db import migrations
from django.utils import timezone

_TABLES = {"keys_usagebucket": "api_key_id,", "keys_usagetotal": ""}

_UNDER_WAY = timedelta(minutes=15)
"""Minutes that processes still write to; they do so every 5 s."""

_TIERS = ((86_400, "day", [60, 3600]), (3600, "hour", [60]))
"""A span, its unit, and the spans whose rows it hasn't counted yet."""

_ADD = """
    INSERT INTO {table} AS u ({key} span, start, network_id, method, outcome, calls,
        credits, duration_us, bytes_out, latencies)
    SELECT {key} %s, date_trunc(%s, start, 'UTC') AS whole, network_id, method, outcome,
        sum(calls), sum(credits), sum(duration_us), sum(bytes_out), keys_sum(latencies)
    FROM {table} WHERE span = ANY(%s) AND start >= %s AND start < %s
    GROUP BY {key} whole, network_id, method, outcome
    ORDER BY {key} whole, network_id, method, outcome
    ON CONFLICT ({key} span, start, network_id, method, outcome) DO UPDATE SET
        calls = u.calls + EXCLUDED.calls,
        credits = u.credits + EXCLUDED.credits,
        duration_us = u.duration_us + EXCLUDED.duration_us,
        bytes_out = u.bytes_out + EXCLUDED.bytes_out,
        latencies = keys_add(u.latencies, EXCLUDED.latencies)
"""

_OLDEST = "SELECT min(start) FROM keys_usagebucket WHERE span = ANY('{60,3600}')"

_DAYS_ALONE = [f"DELETE FROM {table} WHERE span < 86400" for table in _TABLES]
"""The way back keeps all sums, but not of which hours they are."""

_ROOM = [f"ALTER TABLE {table} SET (fillfactor = 85)" for table in _TABLES]
"""A row is added to every 5 s until its day is over: in place, if its page has room."""


def add_tiers_up(apps, schema_editor):
    """Add minutes to hours and days, and hours to days."""
    with schema_editor.connection.cursor() as cursor:
        # Foreign keys are looked up day by day, too: those of all would be remembered.
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("SET LOCAL work_mem = '64MB'")
        cursor.execute(_OLDEST)
        (oldest,) = cursor.fetchone()
        if oldest is None:
            return
        since = oldest.astimezone(UTC).replace(hour=0, minute=0)
        settled = timezone.now() - _UNDER_WAY
        while since < settled:
            until = min(since + timedelta(days=1), settled)
            _add(cursor, since, until)
            since = until
        for table in _TABLES:  # in the order in which processes lock them
            cursor.execute(f"LOCK TABLE {table} IN SHARE ROW EXCLUSIVE MODE")
        _add(cursor, since, datetime.max.replace(tzinfo=UTC))


def _add(cursor, since, until):
    """Add the rows that begin within a time to those of longer spans."""
    for table, key in _TABLES.items():
        statement = _ADD.format(table=table, key=key)
        for span, unit, shorter in _TIERS:
            cursor.execute(statement, [span, unit, shorter, since, until])


class Migration(migrations.Migration):
    dependencies = [("keys", "0015_state_indexes")]

    operations = [
        migrations.RunSQL(_ROOM, migrations.RunSQL.noop),
        migrations.RunPython(add_tiers_up, migrations.RunPython.noop),
        migrations.RunSQL(migrations.RunSQL.noop, _DAYS_ALONE),
    ]
