"""`audit_blocks`: execute stored blocks again, with py-evm or with our own engine."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from networks.models import Network
from nodeapi.chain import block_audit, py_evm
from nodeapi.chain.audit import AuditFailure
from nodeapi.chain.database import importer_connection
from nodeapi.chain.networks import stored_config
from nodeapi.management.block_range import block_range, require_executed
from nodeapi.tracing.execution import snapshot

ENGINES: dict[str, block_audit.Engine] = {
    "py-evm": py_evm.execute,
    "own": block_audit.execute,
}

UNKNOWN_RULES = 2
"""The exit status if py-evm does not have the rules of a block. 1: a block differs."""


class Command(BaseCommand):
    help = (
        "Execute stored blocks again, and compare gas, receipts, requests and state roots "
        "with the rows and headers. py-evm is an independent engine, up to Prague. Exit "
        "status: 1 if a block differs, 2 if py-evm does not have its rules."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--network", required=True, metavar="SLUG", help="slug of the network"
        )
        parser.add_argument(
            "--blocks",
            required=True,
            type=block_range,
            metavar="A-B",
            help="the first and the last block, or one block",
        )
        parser.add_argument(
            "--engine", required=True, choices=sorted(ENGINES), help="what executes"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        slug, engine = options["network"], options["engine"]
        numbers = options["blocks"]
        network = Network.objects.filter(slug=slug).first()
        if network is None or network.head_number is None:
            raise CommandError(f"there is no network {slug!r} with blocks")
        require_executed(network, numbers)
        config = stored_config(network.pk)
        with importer_connection() as connection, snapshot(connection):
            agreeing = block_audit.audit_blocks(
                connection, network.pk, config, numbers, ENGINES[engine]
            )
            try:
                for origin in agreeing:
                    block = origin.block
                    self.stdout.write(
                        f"block {block.header.number}: {engine} agrees"
                        f" ({origin.fork.name}, {len(block.transactions)} transactions,"
                        f" {block.header.gas_used} gas)"
                    )
            except AuditFailure as error:
                raise CommandError(str(error)) from error
            except py_evm.UnknownRules as error:
                raise CommandError(str(error), returncode=UNKNOWN_RULES) from error
        self.stdout.write(
            self.style.SUCCESS(
                f"{engine} agrees with blocks {numbers[0]} to {numbers[-1]} of {slug}"
            )
        )
