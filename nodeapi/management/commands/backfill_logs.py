"""`backfill_logs`: index the logs of blocks that an earlier version imported."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from networks.models import Network
from nodeapi.chain.database import importer_connection
from nodeapi.chain.logs import backfill_logs
from nodeapi.models import LogBackfill

REPORT_BLOCKS = 10_000
"""Number of blocks after which a line of progress is written."""


class Command(BaseCommand):
    help = (
        "Index the logs of blocks that a version without eth_getLogs imported, the "
        "newest first. The service and imports can run. Repeat it after an interruption."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--network", metavar="SLUG", help="only this network, all by default"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        slug = options["network"]
        networks = Network.objects.order_by("pk")
        if slug is not None:
            networks = networks.filter(slug=slug)
            if not networks:
                raise CommandError(f"no network {slug}")
        for network in networks:
            self._backfill(network)

    def _backfill(self, network: Network) -> None:
        row = LogBackfill.objects.filter(network=network).first()
        if row is None:
            self.stdout.write(f"{network.slug}: the logs of all blocks are indexed")
            return
        reported = missing = row.missing_below
        self.stdout.write(f"{network.slug}: {missing} blocks to index")
        with importer_connection() as connection:
            left: int | None = missing
            while left is not None:
                try:
                    left = backfill_logs(connection, network.pk)
                except ValueError as error:
                    raise CommandError(f"{network.slug}: {error}") from error
                if left is not None and reported - left >= REPORT_BLOCKS:
                    reported = left
                    self.stdout.write(f"{network.slug}: {left} blocks left")
        self.stdout.write(
            self.style.SUCCESS(f"{network.slug}: the logs of all blocks are indexed")
        )
