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
            help="age from which entries are deleted (default: %(default)g)",
        )

    def handle(self, *args: Any, keep: float, **options: Any) -> None:
        if keep < 0:
            raise CommandError(f"--keep must be 0 or more, not {keep:g}")
        count = prune(timedelta(seconds=keep))
        self.stdout.write(self.style.SUCCESS(f"Deleted {count} entries."))
