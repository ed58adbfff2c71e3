"""`manage.py add_network`: a new network that follows upstreams."""

from __future__ import annotations

import re
import sys
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.db import Error as DjangoDatabaseError

from evm.public import PUBLIC_NETWORKS, PublicNetwork
from networks.management.arguments import read_headers
from networks.models import HISTORY_BLOCKS, Network
from nodeapi.checkpoint import Candidate
from nodeapi.management.genesis_file import read_genesis
from nodeapi.new_network import (
    Addition,
    NoAnswer,
    NotAdded,
    SameChain,
    add,
    checkpoint_at,
    checkpoint_text,
    choose_checkpoint,
)


def _checkpoint(text: str) -> bytes:
    """Return the hash of `0xHASH`, b"" for `finalized`. Raises: ArgumentTypeError."""
    if text == "finalized":
        return b""
    if not re.fullmatch("0x[0-9a-fA-F]{64}", text):
        raise ArgumentTypeError("must be finalized, or the hash of a block: 0x…")
    return bytes.fromhex(text[2:])


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
        start = parser.add_mutually_exclusive_group()
        start.add_argument(
            "--checkpoint",
            type=_checkpoint,
            metavar="finalized|0xHASH",
            help="start at the upstreams' finalized block, or at the block with a hash, "
            "which has to be trusted, and prove every value of the state",
        )
        start.add_argument(
            "--from-genesis",
            action="store_true",
            help="execute all blocks of a public network from block 0 on",
        )
        parser.add_argument(
            "--history",
            type=int,
            default=HISTORY_BLOCKS,
            metavar="BLOCKS",
            help="number of blocks below the checkpoint that are stored "
            f"(default: {HISTORY_BLOCKS})",
        )
        parser.add_argument(
            "--yes",
            action="store_true",
            help="do not ask whether the finalized block is the right checkpoint",
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
        if public and options["checkpoint"] is None and not options["from_genesis"]:
            raise CommandError(
                f"all blocks of {public.title} from block 0 on take "
                f"{public.from_block_0} (estimated); start at a checkpoint with "
                "--checkpoint finalized, or execute all of them with --from-genesis"
            )
        if options["history"] < 0:
            raise CommandError("--history must not be negative")
        try:
            if options["checkpoint"] is not None:
                wanted = options["checkpoint"]
                found = choose_checkpoint(addition, wanted or None)
                self._show(found, public)
                if not wanted and not options["yes"]:
                    self._confirm()
                checkpoint = checkpoint_at(addition, found.header, options["history"])
                addition = replace(addition, checkpoint=checkpoint)
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

    def _show(self, found: Candidate, public: PublicNetwork | None) -> None:
        """Write a checkpoint, and where its hash can be compared."""
        for line in checkpoint_text(found, public):
            self.stdout.write(line)

    def _confirm(self) -> None:
        """Ask whether the checkpoint is right. Raises: CommandError for another answer."""
        if not sys.stdin.isatty():
            raise CommandError(
                "the checkpoint has to be confirmed, but there is no terminal; pass "
                "its hash to --checkpoint, or --yes to trust the upstreams"
            )
        if input("Is this hash right? [y/N] ").strip().lower() not in ("y", "yes"):
            raise CommandError("the network was not added")

    def _warn(self, warnings: Iterable[str]) -> None:
        for warning in warnings:
            self.stderr.write(self.style.WARNING(warning))
