"""`audit_state`: rebuild state roots from the rows and compare them with the headers."""

from __future__ import annotations

import random
from argparse import ArgumentParser, ArgumentTypeError
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from networks.models import Network
from nodeapi.chain.audit import AuditFailure, audit_block
from nodeapi.chain.database import importer_connection


class Command(BaseCommand):
    help = "Compute state roots from the stored rows and compare them with the headers."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--network", required=True, metavar="SLUG", help="slug of the network"
        )
        which = parser.add_mutually_exclusive_group()
        which.add_argument(
            "--block", type=int, metavar="N", help="audit only this block"
        )
        which.add_argument(
            "--sample", type=_positive, metavar="K", help="audit K random blocks"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        slug = options["network"]
        network = Network.objects.filter(slug=slug).first()
        if network is None or network.head_number is None:
            raise CommandError(f"there is no network {slug!r} with blocks")
        numbers = _numbers(network.head_number, options["block"], options["sample"])
        with importer_connection() as connection:
            for number in numbers:
                try:
                    rows = audit_block(connection, network.pk, number)
                except (AuditFailure, LookupError) as error:
                    raise CommandError(str(error)) from error
                self.stdout.write(
                    f"block {number}: the state root is correct ({rows} rows)"
                )
        self.stdout.write(
            self.style.SUCCESS(
                f"{len(numbers)} blocks of {slug} audited, all state roots are correct"
            )
        )


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError(f"must be 1 or more, not {text!r}")
    return int(text)


def _numbers(head: int, block: int | None, sample: int | None) -> list[int]:
    if block is not None:
        return [block]
    everything = range(head + 1)
    if sample is not None:
        return sorted(random.sample(everything, min(sample, len(everything))))
    return list(everything)
