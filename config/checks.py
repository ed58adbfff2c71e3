"""System checks of the environment and the database.

Invalid values of settings are found earlier, by `config.variables.groups.problems`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.db import connections
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from config import env
from config.variables import processes
from config.variables.groups import GROUPS
from networks.models import Network

OLDEST_COMMIT = "99588da4"
"""The commit whose migrations each app's first migration replaces."""

_BACKFILLS = {
    "nodeapi_logbackfill": "backfill_logs",
    "nodeapi_appearancebackfill": "backfill_appearances",
}
"""Tables of `OLDEST_COMMIT`, which name blocks that are in no index, and the commands there
that add these blocks to the index and empty the table."""


@register
def check_names(**_: Any) -> list[CheckMessage]:
    """Warn of environment variables whose names resemble those of settings."""
    declared = [one.name for group in GROUPS for one in group.variables]
    return [
        Warning(
            f"{name} is not a setting. Do you mean {meant}?",
            hint="docs/settings.md lists all settings.",
            id="config.W001",
        )
        for name, meant in env.misspelt(declared)
    ]


@register(Tags.database)
def check_default_network(
    databases: Sequence[str] | None = None, **_: Any
) -> list[CheckMessage]:
    """Warn if DEFAULT_NETWORK is the slug of no network."""
    slug = processes.DEFAULT_NETWORK.value()
    found: list[CheckMessage] = []
    for alias in databases or ():
        tables = connections[alias].introspection.table_names()
        if not slug or Network._meta.db_table not in tables:
            continue  # `migrate` runs this check before it creates the table
        if not Network.objects.using(alias).filter(slug=slug).exists():
            found.append(
                Warning(
                    f"DEFAULT_NETWORK {slug} is not the slug of a network.",
                    hint="manage.py list_networks shows the slugs of all networks.",
                    id="config.W002",
                )
            )
    return found


@register(Tags.database)
def check_encoding(
    databases: Sequence[str] | None = None, **_: Any
) -> list[CheckMessage]:
    """Return an error for each database whose encoding is not UTF-8.

    `migrate` runs this check before it applies a migration. A database with the encoding
    SQL_ASCII, the default of clusters with the locale C, measures columns in bytes
    instead of characters.
    Source: https://www.postgresql.org/docs/current/multibyte.html
    """
    found: list[CheckMessage] = []
    for alias in databases or ():
        with connections[alias].cursor() as cursor:
            cursor.execute("SHOW server_encoding")
            (encoding,) = cursor.fetchone()
        if encoding != "UTF8":
            found.append(
                Error(
                    f"The database's encoding is {encoding}.",
                    hint="Create it with createdb --encoding UTF8 --template template0.",
                    id="config.E001",
                )
            )
    return found


@register(Tags.database)
def check_replaced_migrations(
    databases: Sequence[str] | None = None, **_: Any
) -> list[CheckMessage]:
    """Return an error for each database that lacks some of the replaced migrations.

    Such a database is older than `OLDEST_COMMIT`, or was partly migrated by it. `migrate`
    runs this check before it applies a migration.
    """
    replaced = {
        name
        for migration in MigrationLoader(None).replacements.values()
        for name in migration.replaces
    }
    return [
        Error(
            f"The tables of this database are those of a version before {OLDEST_COMMIT}.",
            hint=f"Nothing was changed. Check out commit {OLDEST_COMMIT}, run "
            "`manage.py migrate` there, and then with this version.",
            id="config.E002",
        )
        for alias in databases or ()
        if 0
        < len(
            replaced & MigrationRecorder(connections[alias]).applied_migrations().keys()
        )
        < len(replaced)
    ]


@register(Tags.database)
def check_indexes(
    databases: Sequence[str] | None = None, **_: Any
) -> list[CheckMessage]:
    """Return an error for each command that has to end before its table is removed.

    `migrate` runs this check before it applies a migration.
    """
    found: list[CheckMessage] = []
    for alias in databases or ():
        tables = connections[alias].introspection.table_names()
        with connections[alias].cursor() as cursor:
            for table in sorted(_BACKFILLS.keys() & set(tables)):
                cursor.execute(f"SELECT 1 FROM {table} LIMIT 1")
                if cursor.fetchone() is not None:
                    found.append(
                        Error(
                            f"{_BACKFILLS[table]} has not ended in this database.",
                            hint="Nothing was changed. Check out commit "
                            f"{OLDEST_COMMIT}, run `manage.py {_BACKFILLS[table]}` there, "
                            "and then `manage.py migrate` with this version.",
                            id="config.E003",
                        )
                    )
    return found
