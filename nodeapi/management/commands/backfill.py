"""`manage.py backfill`: blocks up to the checkpoint of a network, and their traces."""

from __future__ import annotations

import threading
import time
from argparse import ArgumentParser
from typing import Any

import psycopg
from django.core.management.base import BaseCommand, CommandError
from django.db import Error as DjangoDatabaseError

from networks.models import Network
from nodeapi.follower.history import HistoryRunning, store_history
from nodeapi.follower.past_traces import TracesUnavailable, store_traces
from nodeapi.upstreams.proved_blocks import BlocksUnavailable

REPORT_SECONDS = 10.0
"""Time after which a line of progress is written."""

REPORT_BLOCKS = 100
"""Number of traced blocks after which one is."""


class Command(BaseCommand):
    help = (
        "Fetch blocks with receipts below the checkpoint of a network, prove them by the "
        "hash of the block above, and store them. The newest blocks come first. The "
        "service and the follower can run at the same time. After an interruption, run "
        "it again. With --traces, execute stored blocks up to the checkpoint on the state "
        "that upstreams prove, and store their traces."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the network, the range of blocks, and the rate."""
        parser.add_argument(
            "--network", required=True, metavar="SLUG", help="slug of the network"
        )
        parser.add_argument(
            "--from",
            dest="first",
            type=int,
            required=True,
            metavar="N",
            help="the oldest block to be stored, from 1 on",
        )
        parser.add_argument(
            "--to",
            dest="last",
            type=int,
            metavar="M",
            help="the newest block to be stored; all blocks above it have to be stored "
            "already (default: the block below the oldest stored one); with --traces, "
            "the newest block to be traced (default: the checkpoint)",
        )
        parser.add_argument(
            "--rate",
            type=float,
            default=20.0,
            metavar="BLOCKS",
            help="largest number of blocks per second (default: %(default)g)",
        )
        parser.add_argument(
            "--traces",
            action="store_true",
            help="store the traces of blocks that are stored, from the witnesses of "
            "upstreams, or from the proofs of one that keeps old states",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Store the blocks, and write the progress.

        Raises: CommandError.
        """
        slug, first, last = options["network"], options["first"], options["last"]
        network = Network.objects.filter(slug=slug).first()
        if network is None:
            raise CommandError(f"there is no network {slug!r}")
        if network.checkpoint_number is None:
            raise CommandError(f"{slug} has started at block 0, so no block is missing")
        oldest = network.oldest_number or network.checkpoint_number + 1
        if first < 1 or options["rate"] <= 0 or (last is not None and last < first):
            raise CommandError("--from, --to and --rate must be positive and in order")
        if options["traces"]:
            newest = min(last or network.checkpoint_number, network.checkpoint_number)
            if first < oldest:
                raise CommandError(
                    f"the oldest stored block is {oldest}; store the others before"
                )
            self._trace(slug, network.pk, first, newest, options["rate"])
            return
        if last is not None and last < oldest - 1:
            raise CommandError(
                f"the blocks from {last + 1} to {oldest - 1} are missing as well, and "
                f"prove the ones below; use --to {oldest - 1}"
            )
        self._store(slug, network.pk, first, options["rate"])
        self.stdout.write(
            self.style.SUCCESS(
                f"{slug}: blocks from {min(first, oldest)} on are stored"
            )
        )

    def _trace(
        self, slug: str, network_id: int, first: int, last: int, rate: float
    ) -> None:
        stored = failed = 0

        def progress(number: int, reason: str) -> None:
            nonlocal stored, failed
            if reason:
                failed += 1
                self.stderr.write(f"{slug}: block {number} has no trace: {reason}")
            else:
                stored += 1
                if stored % REPORT_BLOCKS == 0:
                    self.stdout.write(f"{slug}: down to block {number}")

        try:
            store_traces(
                network_id,
                first,
                last,
                threading.Event(),
                blocks_per_second=rate,
                progress=progress,
            )
        except (TracesUnavailable, LookupError) as error:
            raise CommandError(f"{slug}: {error}") from error
        except (psycopg.Error, DjangoDatabaseError) as error:
            raise CommandError(_database_failed(error)) from error
        text = f"{slug}: the traces of {stored} blocks were stored"
        self.stdout.write(
            self.style.SUCCESS(text + (f", {failed} have none" if failed else ""))
        )

    def _store(self, slug: str, network_id: int, first: int, rate: float) -> None:
        reported = time.monotonic()

        def progress(oldest: int) -> None:
            nonlocal reported
            if time.monotonic() >= reported + REPORT_SECONDS:
                reported = time.monotonic()
                self.stdout.write(f"{slug}: down to block {oldest}")

        try:
            store_history(
                network_id,
                first,
                threading.Event(),
                blocks_per_second=rate,
                progress=progress,
            )
        except HistoryRunning as error:
            raise CommandError(
                f"{slug}: another process is storing blocks, such as the follower, which "
                "stores the history chosen with --history; try again later"
            ) from error
        except (BlocksUnavailable, LookupError) as error:
            raise CommandError(f"{slug}: {error}") from error
        except (psycopg.Error, DjangoDatabaseError) as error:
            raise CommandError(_database_failed(error)) from error


def _database_failed(error: Exception) -> str:
    reason = (str(error) or type(error).__name__).splitlines()[0]
    return f"the database failed: {reason}"
