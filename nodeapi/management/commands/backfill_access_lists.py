"""`backfill_access_lists`: make the lists of blocks that an earlier version imported."""

from __future__ import annotations

import time
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from networks.models import Network
from nodeapi.chain.access_lists import ListDiffers, backfill_access_lists
from nodeapi.chain.database import importer_connection
from nodeapi.chain.networks import stored_config
from nodeapi.chain.replay import NotTraceable
from nodeapi.management.block_range import block_range, require_executed

REPORT_SECONDS = 10.0
"""Time after which a line of progress is written."""


class Command(BaseCommand):
    help = (
        "Execute blocks again that were imported before access lists were stored, and "
        "store their lists. The newest blocks come first. The service and imports can "
        "run at the same time. After an interruption, run it again."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add `--network` and `--blocks`."""
        parser.add_argument(
            "--network", required=True, metavar="SLUG", help="slug of the network"
        )
        parser.add_argument(
            "--blocks",
            type=block_range,
            metavar="A-B",
            help="the first and the last block, or one block; default: all blocks",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Add the missing lists, and write the progress.

        Raises: CommandError if there is no such network, or a block can't be executed.
        """
        slug = options["network"]
        network = Network.objects.filter(slug=slug).first()
        if network is None or network.head_number is None:
            raise CommandError(f"there is no network {slug!r} with blocks")
        checkpoint = network.checkpoint_number
        oldest = 0 if checkpoint is None else checkpoint + 1
        numbers = options["blocks"] or range(
            oldest, max(network.head_number, oldest) + 1
        )
        require_executed(network, numbers)
        first, last = numbers[0], min(numbers[-1], network.head_number)
        config = stored_config(network.pk)
        added, reported = 0, time.monotonic()
        with importer_connection() as connection:
            try:
                for number in backfill_access_lists(
                    connection, network.pk, config, first, last
                ):
                    added += 1
                    if time.monotonic() - reported >= REPORT_SECONDS:
                        reported = time.monotonic()
                        self.stdout.write(
                            f"{slug}: {added} lists added, down to block {number}"
                        )
            except (ListDiffers, NotTraceable) as error:
                raise CommandError(f"{slug}: {error}") from error
        self.stdout.write(
            self.style.SUCCESS(
                f"{slug}: {added} lists added, blocks {first} to {last} have theirs"
            )
        )
