"""A faster `flush`, which runs after each test that commits.

Django's own truncates every table, which makes some 200 files anew on disk, and writes the
content types and permissions again that it has just thrown away.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakSet

from django.core.management.commands import flush
from django.db import connections, transaction
from django.db.backends.utils import CursorWrapper

KEPT = {
    "django_content_type",
    "auth_permission",
    "auth_group",
    "auth_group_permissions",
}
"""Tables that migrations fill, such as the groups of staff. Their rows are kept."""


LARGE_BYTES = 4_000_000
"""A larger table is truncated, because deleted rows keep their space: they would slow other
tests down, and let the service estimate the rows of a table instead of counting them."""


_PREPARED: WeakSet[object] = WeakSet()
"""The sessions that have prepared the query of `_filled`."""


class Command(flush.Command):
    """Deletes all rows. Sequences are not reset."""

    def handle(self, **options: Any) -> None:
        connection = connections[options["database"]]
        found = connection.introspection.django_table_names()
        # Transactions lock the outbox last, at their commit.
        tables = sorted({*found} - KEPT, key=lambda name: ("outbox" in name, name))
        with transaction.atomic(connection.alias), connection.cursor() as cursor:
            _empty(cursor, tables)


def _empty(cursor: CursorWrapper, tables: list[str]) -> None:
    # This waits for transactions that have not committed their writes yet.
    cursor.execute(f"LOCK TABLE {', '.join(tables)} IN SHARE ROW EXCLUSIVE MODE")
    filled = _filled(cursor, tables)
    if not filled:
        return
    cursor.execute(
        "SELECT " + ", ".join(f"pg_relation_size('{table}')" for table in filled)
    )
    # No trigger runs: neither those that keep lines of a log from being deleted, nor
    # those that look for rows which refer to the deleted ones. Only superusers may do so.
    sizes = cursor.fetchone() or ()
    cursor.execute("SET LOCAL session_replication_role = replica")
    for table, size in zip(filled, sizes, strict=True):
        if size > LARGE_BYTES:
            cursor.execute(f"TRUNCATE {table} CASCADE")
        else:
            cursor.execute(f"DELETE FROM {table}")


def _filled(cursor: CursorWrapper, tables: list[str]) -> list[str]:
    """Return the tables with rows. A session plans the query, of all tables, once."""
    session = cursor.connection
    if session not in _PREPARED:
        found = ", ".join(f"EXISTS (SELECT FROM {table})" for table in tables)
        cursor.execute(f"PREPARE has_rows AS SELECT {found}")
        _PREPARED.add(session)
    cursor.execute("EXECUTE has_rows")
    has_rows = cursor.fetchone() or ()
    return [table for table, some in zip(tables, has_rows, strict=True) if some]
