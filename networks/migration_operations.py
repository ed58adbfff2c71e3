"""Migration operations that Django does not have."""

from __future__ import annotations

from typing import Any

from django.contrib.postgres.operations import AddIndexConcurrently


class AddIndexWhileServing(AddIndexConcurrently):
    """Creates an index without blocking writes. A killed migration can be repeated.

    PostgreSQL leaves an invalid index behind, which it does not use.

    Source: https://www.postgresql.org/docs/current/sql-createindex.html
    """

    def database_forwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        """Create the index. An invalid index of the same name is dropped first."""
        name = schema_editor.quote_name(self.index.name)
        schema_editor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
        super().database_forwards(app_label, schema_editor, from_state, to_state)
