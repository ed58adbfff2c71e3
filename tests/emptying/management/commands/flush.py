"""A faster `flush`, which runs after each test that commits.

Django's own truncates every table, which makes some 200 files anew on disk, and writes the
content types and permissions again that it has just thrown away.
"""

from __future__ import annotations

from typing import Any

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


class Command(flush.Command):
    """Deletes all rows. Sequences are not reset."""

    def handle(self, **options: Any) -> None:
        connection = connections[options["database"]]
        with transaction.atomic(connection.alias), connection.cursor() as cursor:
            found = connection.introspection.django_table_names(only_existing=True)
            # Transactions lock the outbox last, at their commit.
            order = sorted({*found} - KEPT, key=lambda n: ("outbox" in n, n))
            _empty(cursor, [f'"{name}"' for name in order])


def _empty(cursor: CursorWrapper, tables: list[str]) -> None:
    # This waits for transactions that have not committed their writes yet.
    cursor.execute(f"LOCK TABLE {', '.join(tables)} IN SHARE ROW EXCLUSIVE MODE")
    cursor.execute(
        "SELECT " + ", ".join(f"EXISTS (SELECT FROM {table})" for table in tables)
    )
    has_rows = cursor.fetchone() or ()
    cursor.execute(
        "SELECT " + ", ".join(f"pg_relation_size('{table}')" for table in tables)
    )
    sizes = cursor.fetchone() or ()
    # No trigger runs: neither those that keep lines of a log from being deleted, nor
    # those that look for rows which refer to the deleted ones. Only superusers may do so.
    cursor.execute("SET LOCAL session_replication_role = replica")
    for table, is_filled, size in zip(tables, has_rows, sizes, strict=True):
        if size > LARGE_BYTES:
            cursor.execute(f"TRUNCATE {table} CASCADE")
        elif is_filled:
            cursor.execute(f"DELETE FROM {table}")
