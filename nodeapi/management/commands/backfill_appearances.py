"""`backfill_appearances`: index the addresses of blocks that an earlier version imported."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from networks.models import Network
from nodeapi.chain.appearances import AppearanceRows
from nodeapi.chain.database import importer_connection
from nodeapi.models import AppearanceBackfill

REPORT_BLOCKS = 10_000
"""Number of blocks after which a line of progress is written."""


class Command(BaseCommand):
    help = (
        "Index the addresses in the call frames of blocks that a version without "
        "trace_filter imported, the newest first. The service and imports can run. "
        "Repeat it after an interruption."
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
        row = AppearanceBackfill.objects.filter(network=network).first()
        if row is not None:
            self.stdout.write(f"{network.slug}: {row.missing_below} blocks to index")
            self._index(network, row.missing_below)
        self.stdout.write(
            self.style.SUCCESS(
                f"{network.slug}: the addresses in all blocks are indexed"
            )
        )

    def _index(self, network: Network, missing_below: int) -> None:
        reported = missing_below
        with importer_connection() as connection:
            rows = AppearanceRows(connection, network.pk)
            left: int | None = missing_below
            while left is not None:
                try:
                    left = rows.backfill()
                except ValueError as error:
                    raise CommandError(f"{network.slug}: {error}") from error
                if left is not None and reported - left >= REPORT_BLOCKS:
                    reported = left
                    self.stdout.write(f"{network.slug}: {left} blocks left")
