"""`audit_state`: rebuild state roots from the rows and compare them with the headers."""

from __future__ import annotations

import asyncio
import random
from argparse import ArgumentParser, ArgumentTypeError
from contextlib import AsyncExitStack
from typing import Any

import psycopg
from asgiref.sync import sync_to_async
from django.core.management.base import BaseCommand, CommandError

from networks.models import Network
from nodeapi.chain.audit import AuditFailure, audit_block
from nodeapi.chain.database import importer_connection
from nodeapi.chain.sparse_audit import audit_sparse
from nodeapi.proofs.values import NoProof
from nodeapi.upstreams.client import UpstreamClient

SPARSE_ROWS = 1000
"""Accounts and slots of a network with a checkpoint that are compared by default."""


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
            "--sample",
            type=_positive,
            metavar="K",
            help="audit K random blocks, or of a network that started at a checkpoint K "
            f"random accounts and slots, by default {SPARSE_ROWS}",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        slug = options["network"]
        network = Network.objects.filter(slug=slug).first()
        if network is None or network.head_number is None:
            raise CommandError(f"there is no network {slug!r} with blocks")
        if network.checkpoint_number is not None:
            self._audit_sparse(network, options["block"], options["sample"])
            return
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

    def _audit_sparse(
        self, network: Network, block: int | None, sample: int | None
    ) -> None:
        """Compare rows of a network with a checkpoint with fresh proofs."""
        if block is not None:
            raise CommandError(
                f"{network.slug} started at a checkpoint, so that no state root can be "
                "computed from its rows; without --block, rows are proved again"
            )
        with importer_connection() as connection:
            try:
                count, number = asyncio.run(
                    _audit_with_proofs(connection, network, sample or SPARSE_ROWS)
                )
            except (AuditFailure, LookupError) as error:
                raise CommandError(str(error)) from error
            except NoProof as error:
                raise CommandError(f"no upstream proves the rows: {error}") from error
        self.stdout.write(
            self.style.SUCCESS(
                f"{count} accounts and slots of {network.slug} were proved at block "
                f"{number}, all rows are correct"
            )
        )


async def _audit_with_proofs(
    connection: psycopg.Connection[Any], network: Network, sample: int
) -> tuple[int, int]:
    async with AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(UpstreamClient(url, headers))
            for url, headers in await sync_to_async(_upstreams)(network)
        ]
        return await audit_sparse(connection, network.pk, clients, sample)


def _upstreams(network: Network) -> list[tuple[str, dict[str, str]]]:
    found = network.upstreams.filter(is_enabled=True).order_by("position")
    return [(each.url, each.headers) for each in found]


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
