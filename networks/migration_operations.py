"""What migrations do that Django's own operations do not."""

from __future__ import annotations

from typing import Any

from django.contrib.postgres.operations import AddIndexConcurrently


class AddIndexWhileServing(AddIndexConcurrently):
    """Makes an index without holding writers up; a killed migration can be repeated.

    PostgreSQL leaves an unfinished index behind, of which it makes no use.
    Source: https://www.postgresql.org/docs/current/sql-createindex.html
    """

    def database_forwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        """Make the index anew, whatever is left of it."""
        name = schema_editor.quote_name(self.index.name)
        schema_editor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
        super().database_forwards(app_label, schema_editor, from_state, to_state)
