"""Write the sample chain's files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from samples.sample import write_sample_chain


class Command(BaseCommand):
    help = "Build the files of the sample chain. They are the same each time."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--out",
            type=Path,
            default=settings.BASE_DIR / "samples",
            help="folder for README.md, sample/genesis.json and sample/chain.rlp",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        story = write_sample_chain(options["out"])
        head = story.chain.head
        self.stdout.write(
            self.style.SUCCESS(
                f"{len(story.notes)} blocks in {options['out']}, "
                f"head {head.number} 0x{head.hash.hex()}"
            )
        )
