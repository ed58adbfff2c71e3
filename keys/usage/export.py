"""Usage as CSV, a line for each row that is stored; PostgreSQL itself writes it."""

from __future__ import annotations

from django.db import connection

from keys.charts.windows import Window
from keys.models import ApiKey, Span

MAX_ROWS = 100_000
"""The latest ones; some 8 MB. A key that is used for everything has a third of them in 30
days."""

_COPY = """
    COPY (
        SELECT to_char(start AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS start,
            span AS span_seconds, slug AS network, method, outcome, calls, credits,
            round(duration_us / 1000.0, 3) AS duration_ms, bytes_out
        FROM keys_usagebucket used JOIN networks_network ON network_id = networks_network.id
        WHERE api_key_id = %s AND span = ANY(%s) AND start >= %s AND start < %s
        ORDER BY used.start DESC, network_id, method, outcome
        LIMIT %s
    ) TO STDOUT WITH (FORMAT csv, HEADER)"""


def usage_csv(api_key: ApiKey, window: Window) -> str:
    """Return a key's usage within a window, the latest first."""
    asked = (api_key.pk, list(Span.values), window.start, window.end, MAX_ROWS)
    with connection.cursor() as cursor, cursor.copy(_COPY, asked) as copy:
        text = b"".join(copy).decode()
    # RFC 4180; there is no line end within a field.
    return text.replace("\n", "\r\n")
