"""`prune_outbox`: delete old entries of the outbox."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from outbox.pruning import KEEP, prune


class Command(BaseCommand):
    help = "Delete old entries of the outbox. Web processes do this hourly."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--keep",
            type=float,
            default=KEEP.total_seconds(),
            metavar="SECONDS",
            help="Age from which entries are deleted. Default: %(default)g.",
        )

    def handle(self, *args: Any, keep: float, **options: Any) -> None:
        if keep < 0:
            raise CommandError("--keep must not be negative.")
        count = prune(timedelta(seconds=keep))
        self.stdout.write(self.style.SUCCESS(f"Deleted {count} entries."))
