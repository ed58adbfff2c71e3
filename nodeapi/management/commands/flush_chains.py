"""`flush_chains`: delete the chain data of all networks."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from nodeapi.chain.database import ImportRunning, importer_connection
from nodeapi.chain.removal import ChainData, remove_chain_data, stored_chain_data


class Command(BaseCommand):
    help = (
        "Delete the blocks, state, transactions and traces of all networks. The "
        "chains can be imported again. Customers, keys, entitlements, wallets and "
        "the networks with their settings are kept. It also works before `migrate`."
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
        with importer_connection() as connection:
            data = stored_chain_data(connection)
            if not data:
                self.stdout.write("There is no chain data in this database.")
                return
            self.stdout.write(_description(data))
            if options["interactive"] and not _confirmed():
                raise CommandError("cancelled, nothing was deleted")
            try:
                remove_chain_data(connection)
            except ImportRunning as error:
                raise CommandError(f"{error}, nothing was deleted") from error
        self.stdout.write(self.style.SUCCESS("The chain data was deleted."))
        self.stdout.write(
            "Next: `manage.py migrate`, then `manage.py import_chain` for each network."
            " `make run` does both for the sample chain."
        )


def _description(data: ChainData) -> str:
    """Return a description of the data to be deleted, for the confirmation."""
    networks = [f"  {slug}, head {head:,}" for slug, head in data.heads.items()]
    tables = [f"  {count:>15,}  {table}" for table, count in data.rows.items()]
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
