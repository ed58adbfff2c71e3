"""Whether the tables of apps are those of this version."""

from __future__ import annotations

from functools import cache

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder


def is_migrated(alias: str | None, *labels: str) -> bool:
    """Return whether the default database has all migrations of apps.

    Receivers of `post_migrate` ask it: that signal is also sent after `migrate APP zero`
    and after `flush` of a database without tables.

    alias: the database of the signal; None for the default one. Other ones have no tables
    of this project.
    """
    if alias not in (None, DEFAULT_DB_ALIAS):
        return False
    recorder = MigrationRecorder(connections[DEFAULT_DB_ALIAS])
    return _last(labels) <= recorder.applied_migrations().keys()


@cache
def _last(labels: tuple[str, ...]) -> set[tuple[str, str]]:
    """Return the last migrations of apps, by app and name."""
    graph = MigrationLoader(None).graph
    return {node for label in labels for node in graph.leaf_nodes(label)}
