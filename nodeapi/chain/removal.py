"""Removal of all chain data, for an upgrade that requires a new import.

It has to work before migrations are applied. It therefore queries the existing tables,
and only reads columns that the first version had.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.apps import apps
from psycopg.sql import SQL, Identifier

from nodeapi.chain.database import ImportRunning, import_lock
from outbox.append import begin
from outbox.streams import blocks

if TYPE_CHECKING:
    import psycopg


@dataclass(frozen=True, slots=True)
class ChainData:
    """The chain data of all networks."""

    heads: dict[str, int]
    """Slug → number of the head, for networks that have one."""
    rows: dict[str, int]
    """Table → number of rows, for tables that have any."""

    def __bool__(self) -> bool:
        return bool(self.heads or self.rows)


def stored_chain_data(connection: psycopg.Connection[Any]) -> ChainData:
    """Count the chain data. This reads every table once."""
    rows = {}
    for table in _tables(connection):
        counting = SQL("SELECT count(*) FROM {}").format(Identifier(table))
        (rows[table],) = connection.execute(counting).fetchone() or (0,)
    heads = {slug: head for _, slug, head in _networks(connection) if head is not None}
    return ChainData(heads, {table: count for table, count in rows.items() if count})


def remove_chain_data(connection: psycopg.Connection[Any]) -> None:
    """Empty all tables of chain data and remove all heads, in one transaction.

    Ids of rows are not reused. Serving processes are notified.

    Raises: ImportRunning, without any change.
    """
    networks = _networks(connection)
    with ExitStack() as locks:
        for network_id, slug, _ in networks:
            try:
                locks.enter_context(import_lock(connection, network_id))
            except ImportRunning as error:
                raise ImportRunning(f"an import into {slug} is running") from error
        with begin(connection) as changes:
            tables = SQL(", ").join(map(Identifier, _tables(connection)))
            connection.execute(SQL("TRUNCATE {}").format(tables))
            connection.execute(
                "UPDATE networks_network SET head_number = NULL, head_hash = NULL,"
                " safe_hash = NULL, finalized_hash = NULL"
            )
            if _has_table(connection, "outbox_stream"):
                for network_id, _, _ in networks:
                    changes.append(blocks(network_id))


def _tables(connection: psycopg.Connection[Any]) -> list[str]:
    """Return the names of the existing tables of chain data, sorted."""
    names = [
        model._meta.db_table for model in apps.get_app_config("nodeapi").get_models()
    ]
    return sorted(name for name in names if _has_table(connection, name))


def _networks(connection: psycopg.Connection[Any]) -> list[tuple[int, str, int | None]]:
    """Return id, slug and head number of each network."""
    if not _has_table(connection, "networks_network"):
        return []
    return connection.execute(
        "SELECT id, slug, head_number FROM networks_network ORDER BY id"
    ).fetchall()


def _has_table(connection: psycopg.Connection[Any], name: str) -> bool:
    row = connection.execute("SELECT to_regclass(%s) IS NOT NULL", (name,)).fetchone()
    return row is not None and bool(row[0])
