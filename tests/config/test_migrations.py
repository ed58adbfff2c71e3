"""Rules for the migrations of all apps."""

from __future__ import annotations

from django.apps import apps
from django.db import models
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations import AddField
from django.db.models.fields import NOT_PROVIDED

SHARED = {"keys", "networks", "wallets"}
"""Apps whose tables web processes write. Blocks are only written by the one importer."""


def added_fields() -> list[tuple[str, models.Field]]:
    """Return the columns that migrations have added to existing tables.

    Columns that a later migration has removed are omitted, and those of the first
    migrations, which create the tables.
    """
    found = []
    for (label, name), migration in MigrationLoader(None).disk_migrations.items():
        if label not in SHARED or migration.initial:
            continue
        for operation in migration.operations:
            if isinstance(operation, AddField):
                model = apps.get_model(label, operation.model_name)
                field = {f.name: f for f in model._meta.fields}.get(operation.name)
                if field is not None:
                    found.append((f"{label}.{name}: {operation.name}", field))
    return found


def test_processes_of_the_version_before_can_go_on_adding_rows() -> None:
    """Their INSERT statements lack new columns, which therefore need a default."""
    lacking = [
        name
        for name, field in added_fields()
        if not field.null
        and not field.many_to_many
        and field.db_default is NOT_PROVIDED
    ]
    assert lacking == []
