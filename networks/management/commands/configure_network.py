"""`manage.py configure_network`."""

from __future__ import annotations

from argparse import ArgumentParser, BooleanOptionalAction
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError

from networks.management.arguments import read_tracers
from networks.models import Network
from networks.services import configure_network


class Command(BaseCommand):
    help = "Change the settings of a network; what is not given stays as it is."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", help="the network, as list_networks shows it")
        parser.add_argument("--name", help="what people call it")
        parser.add_argument(
            "--host",
            action="append",
            metavar="NAME",
            help="a host name of the network; give all of them, they replace the old "
            "ones; an empty one removes them",
        )
        parser.add_argument(
            "--tracers", metavar="A,B", help="the tracers offered; all, or none"
        )
        parser.add_argument(
            "--total-difficulty",
            action=BooleanOptionalAction,
            default=None,
            help="whether block objects carry totalDifficulty",
        )
        parser.add_argument(
            "--upstream",
            metavar="URL",
            help="the node that takes the transactions that wallet users send; an "
            "empty one for none",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        slug = options["slug"]
        try:
            network = Network.objects.get(slug=slug)
        except Network.DoesNotExist:
            raise CommandError(f"there is no network {slug!r}") from None
        hosts, tracers = options["host"], options["tracers"]
        try:
            configure_network(
                network=network,
                name=options["name"],
                host_names=None if hosts is None else [h for h in hosts if h],
                tracers=None if tracers is None else read_tracers(tracers),
                emit_total_difficulty=options["total_difficulty"],
                upstream_url=options["upstream"],
            )
        except ValidationError as error:
            raise CommandError(" ".join(error.messages)) from error
        self.stdout.write(self.style.SUCCESS(f"{slug}: configured"))
