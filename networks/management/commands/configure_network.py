"""`manage.py configure_network`."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, BooleanOptionalAction
from typing import Any, Literal

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError

from networks.management.arguments import read_headers, read_tracers
from networks.models import Network, NetworkState
from networks.services import change_state, configure_network


class Command(BaseCommand):
    help = (
        "Change the settings of a network. Options that are not given stay as they are."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", help="slug of the network")
        parser.add_argument("--name", help="name shown on pages")
        parser.add_argument(
            "--state",
            choices=["visible", "hidden", "retired"],
            help="visible: customers see it, even if its first import is not complete; hidden: they do not, but requests are answered; "
            "retired: it is not followed, and requests are rejected",
        )
        parser.add_argument(
            "--host",
            action="append",
            metavar="NAME",
            help="a host name of the network; can be repeated; replaces all earlier ones; "
            "'' removes them",
        )
        parser.add_argument(
            "--tracers",
            metavar="A,B",
            help="names of the tracers that are offered, or all, or none",
        )
        parser.add_argument(
            "--total-difficulty",
            action=BooleanOptionalAction,
            default=None,
            help="whether block objects contain totalDifficulty",
        )
        parser.add_argument(
            "--upstream",
            action="append",
            metavar="URL",
            help="URL of a node of the chain (http, https, ws, wss); can be repeated; "
            "replaces all earlier ones; '' removes them",
        )
        parser.add_argument(
            "--header",
            action="append",
            metavar="'NAME: VALUE'",
            help="an HTTP header of all requests to the given upstreams; can be repeated",
        )
        parser.add_argument(
            "--enable",
            action="append",
            type=int,
            default=[],
            metavar="ID",
            help="enable the upstream with this number, which network_status shows",
        )
        parser.add_argument(
            "--disable",
            action="append",
            type=int,
            default=[],
            metavar="ID",
            help="disable the upstream with this number",
        )
        parser.add_argument(
            "--agree",
            type=int,
            metavar="K",
            help="number of upstreams that have to agree on the head",
        )
        parser.add_argument(
            "--keep-side-blocks",
            type=_blocks,
            metavar="BLOCKS",
            help="delete side blocks this far below the finalized block; all: never",
        )
        parser.add_argument(
            "--proofs",
            type=_blocks,
            metavar="BLOCKS",
            help="keep the trie nodes of this many blocks below the head, for proofs; "
            "all: of all blocks from now on; 0: of no blocks",
        )
        parser.add_argument(
            "--public-explorer",
            action=BooleanOptionalAction,
            default=None,
            help="whether the explorer shows blocks, transactions and addresses to everyone",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        slug = options["slug"]
        try:
            network = Network.objects.get(slug=slug)
        except Network.DoesNotExist:
            raise CommandError(f"there is no network {slug!r}") from None
        hosts, tracers = options["host"], options["tracers"]
        urls, headers = options["upstream"], options["header"]
        if headers is not None and not urls:
            raise CommandError("--header requires --upstream URL")
        try:
            configure_network(
                network=network,
                name=options["name"],
                host_names=None if hosts is None else [h for h in hosts if h],
                tracers=None if tracers is None else read_tracers(tracers),
                emit_total_difficulty=options["total_difficulty"],
                upstream_urls=None if urls is None else [url for url in urls if url],
                upstream_headers=None if headers is None else read_headers(headers),
                upstreams_enabled={
                    **dict.fromkeys(options["enable"], True),
                    **dict.fromkeys(options["disable"], False),
                },
                agree=options["agree"],
                keep_side_blocks=options["keep_side_blocks"],
                keep_proofs=options["proofs"],
                public_explorer=options["public_explorer"],
            )
            if options["state"] is not None:
                change_state(network=network, state=NetworkState(options["state"]))
        except ValidationError as error:
            raise CommandError(" ".join(error.messages)) from error
        self.stdout.write(self.style.SUCCESS(f"{slug}: configured"))


def _blocks(text: str) -> int | Literal["all"]:
    """Return a number of blocks, or the word `all`."""
    if text == "all":
        return "all"
    if not text.isdecimal():
        raise ArgumentTypeError(f"must be a number of blocks, or all, not {text!r}")
    return int(text)
