"""Commands that add the rows of an index for blocks that were stored before it existed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from argparse import ArgumentParser
from typing import TYPE_CHECKING, Any, ClassVar

from django.core.management.base import BaseCommand, CommandError

from networks.models import Network
from nodeapi.chain.database import importer_connection

if TYPE_CHECKING:
    import psycopg

    from nodeapi.models import AppearanceBackfill, LogBackfill

REPORT_BLOCKS = 10_000
"""Number of blocks after which a line of progress is written."""


class BackfillCommand(BaseCommand, ABC):
    """Indexes the blocks of one or all networks, and writes its progress.

    remaining: the table of networks with blocks that are not indexed.
    content: the indexed data, such as `the logs of all blocks`.
    """

    remaining: ClassVar[type[LogBackfill | AppearanceBackfill]]
    content: ClassVar[str]

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add `--network`."""
        parser.add_argument(
            "--network", metavar="SLUG", help="slug of a network; default: all networks"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Index the blocks of each network.

        Raises: CommandError if there is no such network, or stored data is damaged.
        """
        slug = options["network"]
        networks = Network.objects.order_by("pk")
        if slug is not None:
            networks = networks.filter(slug=slug)
            if not networks:
                raise CommandError(f"there is no network {slug!r}")
        for network in networks:
            row = self.remaining.objects.filter(network=network).first()
            if row is not None:
                self.stdout.write(
                    f"{network.slug}: {row.missing_below} blocks to index"
                )
                self._index(network, row.missing_below)
            self.stdout.write(
                self.style.SUCCESS(f"{network.slug}: {self.content} are indexed")
            )

    @abstractmethod
    def index_blocks(
        self, connection: psycopg.Connection[Any], network_id: int
    ) -> int | None:
        """Index some blocks, the newest first.

        Returns: the number below which blocks are not indexed, None if all are.
        Raises: ValueError if stored data is damaged.
        """

    def _index(self, network: Network, missing_below: int) -> None:
        reported = missing_below
        left: int | None = missing_below
        with importer_connection() as connection:
            while left is not None:
                try:
                    left = self.index_blocks(connection, network.pk)
                except ValueError as error:
                    raise CommandError(f"{network.slug}: {error}") from error
                if left is not None and reported - left >= REPORT_BLOCKS:
                    reported = left
                    self.stdout.write(f"{network.slug}: {left} blocks left")
