"""System checks of the key on the home page, and of the database before migrations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.core.checks import CheckMessage, Error, Tags, register
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.recorder import MigrationRecorder

from keys.format import is_well_formed
from nodeapi import conf

_NEEDS_RECORDS = ("nodeapi", "0004_record_for_each_transaction")


@register
def check_home_api_key(**_: Any) -> list[CheckMessage]:
    """Return an error if HOME_API_KEY is not an API key: the examples would fail."""
    key = conf.home_api_key()
    if not key or is_well_formed(key):
        return []
    return [
        Error(
            "HOME_API_KEY is not a complete API key.",
            hint="`manage.py issue_key` creates a key, nk_ and 36 characters.",
            id="nodeapi.E002",
        )
    ]


@register(Tags.database)
def check_transaction_records(
    databases: Sequence[str] | None = None, **_: Any
) -> list[CheckMessage]:
    """Return an error, with instructions, if this version can't migrate the chain data.

    The migration itself checks this as well, but only after migrations of other apps.
    """
    return [
        Error(
            "This database has blocks that were imported before traces were recorded."
            " A migration can't execute blocks, so this version can't use them.",
            hint=(
                "Nothing was changed. Run `manage.py flush_chains`: it deletes the chain"
                " data and keeps customers, keys and networks. Then migrate, and import"
                " the chains again. See docs/upgrading.md."
            ),
            id="nodeapi.E001",
        )
        for alias in databases or ()
        if _has_blocks_without_records(connections[alias])
    ]


def _has_blocks_without_records(connection: BaseDatabaseWrapper) -> bool:
    """Return whether blocks lack records; fast once the migration is applied."""
    tables = connection.introspection.table_names()
    if "nodeapi_block" not in tables:
        return False
    if _NEEDS_RECORDS in MigrationRecorder(connection).applied_migrations():
        return False
    query = "SELECT EXISTS (SELECT FROM nodeapi_block b WHERE b.transaction_count > 0"
    if "nodeapi_transactionrecord" in tables:
        query += (
            " AND NOT EXISTS"
            " (SELECT FROM nodeapi_transactionrecord r WHERE r.block_id = b.id)"
        )
    with connection.cursor() as cursor:
        cursor.execute(query + ")")
        (found,) = cursor.fetchone()
    return bool(found)
