"""`manage.py add_network`: a new network that follows upstreams."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import psycopg
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.db import Error as DjangoDatabaseError

from evm.public import PUBLIC_NETWORKS
from networks.management.arguments import read_headers
from networks.models import Network
from nodeapi.management.genesis_file import read_genesis
from nodeapi.new_network import Addition, NoAnswer, NotAdded, SameChain, add


class Command(BaseCommand):
    help = (
        "Add a network with its genesis and its upstreams. `follow` imports the blocks."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "slug", help="slug, a part of URLs: lower-case letters, digits and hyphens"
        )
        source = parser.add_mutually_exclusive_group(required=True)
        source.add_argument(
            "--genesis", type=Path, metavar="FILE", help="geth's genesis.json"
        )
        source.add_argument(
            "--public", choices=PUBLIC_NETWORKS, help="a built-in genesis"
        )
        parser.add_argument(
            "--upstream",
            action="append",
            default=[],
            metavar="URL",
            help="URL of a node of the chain (http, https, ws, wss); can be repeated",
        )
        parser.add_argument(
            "--header",
            action="append",
            default=[],
            metavar="'NAME: VALUE'",
            help="an HTTP header of all requests to these upstreams; can be repeated",
        )
        parser.add_argument(
            "--agree",
            type=int,
            default=1,
            metavar="K",
            help="number of upstreams that have to agree on the head (default: 1)",
        )
        parser.add_argument("--name", help="name shown on pages")
        parser.add_argument(
            "--host",
            action="append",
            default=[],
            metavar="NAME",
            help="a host name of the network; can be repeated",
        )
        parser.add_argument(
            "--no-check",
            action="store_true",
            help="do not check which chain the upstreams serve",
        )
        parser.add_argument(
            "--second",
            action="store_true",
            help="add it although another network has the same chain id and genesis",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        slug, urls = options["slug"], options["upstream"]
        if Network.objects.filter(slug=slug).exists():
            raise CommandError(
                f"the slug {slug!r} is in use; configure_network changes that network"
            )
        public = PUBLIC_NETWORKS.get(options["public"] or "")
        addition = Addition(
            slug=slug,
            name=options["name"] or (public.title if public else slug),
            genesis=public.genesis() if public else read_genesis(options["genesis"]),
            genesis_hash=public.genesis_hash if public else b"",
            urls=urls,
            headers=read_headers(options["header"]),
            agree=options["agree"],
            host_names=options["host"],
            asks_upstreams=not options["no_check"],
            may_repeat=options["second"],
        )
        try:
            added = add(addition)
        except ValidationError as error:
            raise CommandError(" ".join(error.messages)) from error
        except SameChain as error:
            raise CommandError(f"{error}; --second adds another one") from error
        except NoAnswer as error:
            raise CommandError(f"{error}; --no-check skips this check") from error
        except NotAdded as error:
            raise CommandError(str(error)) from error
        except (psycopg.Error, DjangoDatabaseError) as error:
            reason = (str(error) or type(error).__name__).splitlines()[0]
            raise CommandError(f"the database failed: {reason}") from error
        self._warn(added.warnings)
        self.stdout.write(
            self.style.SUCCESS(
                f"{slug}: added, chain id {added.network.chain_id}, block 0 "
                f"0x{added.block_0.hash.hex()}, upstreams: {len(urls)}"
            )
        )

    def _warn(self, warnings: Iterable[str]) -> None:
        for warning in warnings:
            self.stderr.write(self.style.WARNING(warning))
