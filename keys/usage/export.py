"""Export of usage as CSV, written by PostgreSQL. One line is one stored row."""

from __future__ import annotations

from datetime import datetime

from django.db import connection

from keys.models import ApiKey
from keys.usage.ranges import Range

MAX_ROWS = 100_000
"""Most rows exported, the latest first. That is about 8 MB."""

_COPY = """
    COPY (
        SELECT to_char(start AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS start,
            span AS span_seconds, slug AS network, method, outcome, calls, credits,
            round(duration_us / 1000.0, 3) AS duration_ms, bytes_out
        FROM keys_usagebucket used JOIN networks_network ON network_id = networks_network.id
        WHERE api_key_id = %s AND span = %s AND start >= %s AND start < %s
        ORDER BY used.start DESC, network_id, method, outcome
        LIMIT %s
    ) TO STDOUT WITH (FORMAT csv, HEADER)"""


def usage_csv(api_key: ApiKey, chosen: Range, now: datetime) -> str:
    """Return a key's usage within a range as CSV, the latest rows first."""
    window = chosen.window(now)
    asked = (api_key.pk, int(chosen.span), window.start, window.end, MAX_ROWS)
    with connection.cursor() as cursor, cursor.copy(_COPY, asked) as copy:
        text = b"".join(copy).decode()
    # RFC 4180; there is no line end within a field.
    return text.replace("\n", "\r\n")
