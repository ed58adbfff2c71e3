"""`flush_chains`: delete the chain data of all networks."""

from __future__ import annotations

from argparse import ArgumentParser
from contextlib import ExitStack
from typing import Any

import psycopg
from django.apps import apps
from django.core.management.base import BaseCommand, CommandError
from psycopg.sql import SQL, Identifier

from networks.models import Network
from nodeapi.chain.database import ImportRunning, import_lock, importer_connection
from outbox.append import begin
from outbox.streams import blocks

Connection = psycopg.Connection[Any]


class Command(BaseCommand):
    help = (
        "Delete the blocks, state, transactions and traces of all networks. The "
        "chains can be imported again. Customers, keys, entitlements, wallets and "
        "the networks with their settings are kept."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        # Named like the option of Django's own `flush`.
        parser.add_argument(
            "--noinput",
            "--no-input",
            action="store_false",
            dest="interactive",
            help="do not ask for confirmation",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        networks = Network.objects.order_by("pk")
        with importer_connection() as connection:
            heads = networks.exclude(head_number=None).values_list(
                "slug", "head_number"
            )
            rows = _count_rows(connection)
            if not heads and not any(rows.values()):
                self.stdout.write("There is no chain data in this database.")
                return
            self.stdout.write(_description(dict(heads), rows))
            if options["interactive"] and not _confirmed():
                raise CommandError("cancelled, nothing was deleted")
            _delete(connection, dict(networks.values_list("pk", "slug")), list(rows))
        self.stdout.write(self.style.SUCCESS("The chain data was deleted."))
        self.stdout.write(
            "Next: `manage.py import_chain` for each network. `make run` imports the "
            "sample chain."
        )


def _count_rows(connection: Connection) -> dict[str, int]:
    """Return the number of rows of each table of chain data. This reads every table."""
    models = apps.get_app_config("nodeapi").get_models()
    rows = {}
    for table in sorted(model._meta.db_table for model in models):
        counting = SQL("SELECT count(*) FROM {}").format(Identifier(table))
        (rows[table],) = connection.execute(counting).fetchone() or (0,)
    return rows


def _delete(
    connection: Connection, networks: dict[int, str], tables: list[str]
) -> None:
    """Empty the tables and remove all heads, in one transaction.

    networks: slugs by id. Ids of rows are not reused. Serving processes are notified.
    Raises: CommandError, without any change, during an import.
    """
    with ExitStack() as locks:
        for network_id, slug in networks.items():
            try:
                locks.enter_context(import_lock(connection, network_id))
            except ImportRunning as error:
                raise CommandError(
                    f"an import into {slug} is running, nothing was deleted"
                ) from error
        with begin(connection) as changes:
            connection.execute(
                SQL("TRUNCATE {}").format(SQL(", ").join(map(Identifier, tables)))
            )
            connection.execute(
                "UPDATE networks_network SET head_number = NULL, head_hash = NULL,"
                " safe_hash = NULL, finalized_hash = NULL"
            )
            for network_id in networks:
                changes.append(blocks(network_id))


def _description(heads: dict[str, int | None], rows: dict[str, int]) -> str:
    """Return a description of the data to be deleted, for the confirmation."""
    networks = [f"  {slug}, head {head:,}" for slug, head in heads.items()]
    tables = [f"  {count:>15,}  {table}" for table, count in rows.items() if count]
    return "\n".join(
        [
            "This deletes the chain data of these networks:",
            *(networks or ["  none has blocks"]),
            "All rows of these tables are deleted:",
            *(tables or ["  none has rows"]),
            "Customers, keys, entitlements, usage, wallets and networks are kept.",
        ]
    )


def _confirmed() -> bool:
    try:
        answer = input("Type 'yes' to continue, or 'no' to cancel: ")
    except EOFError:  # standard input is closed: a script without --noinput
        return False
    return answer == "yes"
