"""`manage.py delete_network`."""

from __future__ import annotations

import threading
from argparse import SUPPRESS, ArgumentParser
from typing import Any

import psycopg
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError

from networks.models import Network
from nodeapi.deletion.job import DeletionFailed, network_of, run_deletion
from nodeapi.deletion.progress import TableProgress
from nodeapi.deletion.requests import (
    reason_against,
    request_deletion,
    single_network_keys,
    tables_of,
)
from server.lifeline import end_with_parent

STOP_SECONDS = 10
"""Time after which a process without parent ends, even within a batch."""

LINGER_SECONDS = 5
"""Time for which a finished process waits until its parent stops it. A process that ends
earlier would be restarted."""


class Command(BaseCommand):
    help = "Delete a retired network with its blocks, state, usage and entitlements."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", help="slug of the network")
        parser.add_argument(
            "--noinput",
            "--no-input",
            action="store_false",
            dest="interactive",
            help="do not ask for confirmation",
        )
        parser.add_argument(
            "--resume",
            action="store_true",
            help="continue a deletion that was interrupted",
        )
        parser.add_argument("--lifeline", action="store_true", help=SUPPRESS)

    def handle(self, *args: Any, **options: Any) -> None:
        slug, stop = options["slug"], threading.Event()
        if options["lifeline"]:
            end_with_parent(STOP_SECONDS)
        if not options["resume"]:
            self._request(slug, is_asking=options["interactive"])
        network = network_of(slug)
        if network is not None:
            try:
                run_deletion(network.pk, stop, _Progress(self).report)
            except (DeletionFailed, psycopg.Error) as error:
                reason = (str(error) or type(error).__name__).splitlines()[0]
                raise CommandError(
                    f"{reason}; the deletion is incomplete, and "
                    f"`manage.py delete_network {slug} --resume` continues it"
                ) from error
            self.stdout.write(self.style.SUCCESS(f"{slug}: deleted"))
        elif options["resume"]:
            self.stdout.write(f"{slug}: no deletion is in progress")
        if options["lifeline"]:
            stop.wait(LINGER_SECONDS)

    def _request(self, slug: str, *, is_asking: bool) -> None:
        """Print the rows to be deleted, and start the deletion.

        Raises: CommandError if the network can't be deleted, or is not confirmed.
        """
        network = Network.objects.filter(slug=slug).first()
        if network is None:
            raise CommandError(f"there is no network {slug!r}")
        if reason := reason_against(network):
            raise CommandError(reason)
        keys, is_complete = single_network_keys(network)
        self.stdout.write(_description(network, tables_of(network)))
        more = "" if is_complete else "at least "
        self.stdout.write(
            f"Keys that are valid for no other network will be disabled: {more}{keys:,}"
        )
        if is_asking and not _confirmed(slug):
            raise CommandError("cancelled, nothing was deleted")
        try:
            request_deletion(network)
        except ValidationError as error:
            raise CommandError(" ".join(error.messages)) from error


class _Progress:
    """Prints a line for each table that is done."""

    def __init__(self, command: BaseCommand) -> None:
        self._command = command
        self._printed: set[str] = set()

    def report(self, tables: list[TableProgress]) -> None:
        """Print the tables that have been finished since the last call."""
        for table in tables:
            if table.is_done and table.table not in self._printed:
                self._printed.add(table.table)
                if table.deleted:
                    self._command.stdout.write(f"{table.deleted:>15,}  {table.table}")


def _description(network: Network, tables: list[TableProgress]) -> str:
    lines = [f"This deletes the network {network.slug} with these rows:"]
    for table in tables:
        if table.about:
            about = "" if table.is_exact else "about "
            lines.append(f"{about + format(table.about, ','):>21}  {table.table}")
    return "\n".join(lines)


def _confirmed(slug: str) -> bool:
    try:
        answer = input(f"Type {slug} to delete it, anything else to cancel: ")
    except EOFError:  # standard input is closed: a script without --noinput
        return False
    return answer == slug
