"""`manage.py configure_network`."""

from __future__ import annotations

from argparse import ArgumentParser, BooleanOptionalAction
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError

from networks.models import Network, all_tracers
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

    def handle(self, *args: Any, **options: Any) -> None:
        slug = options["slug"]
        try:
            network = Network.objects.get(slug=slug)
        except Network.DoesNotExist:
            raise CommandError(f"there is no network {slug!r}") from None
        hosts = options["host"]
        try:
            configure_network(
                network=network,
                name=options["name"],
                host_names=None if hosts is None else [h for h in hosts if h],
                tracers=_tracers(options["tracers"]),
                emit_total_difficulty=options["total_difficulty"],
            )
        except ValidationError as error:
            raise CommandError(" ".join(error.messages)) from error
        self.stdout.write(self.style.SUCCESS(f"{slug}: configured"))


def _tracers(text: str | None) -> list[str] | None:
    """Return the tracers that a word list names.

    Raises: CommandError naming the first that does not exist.
    """
    if text is None:
        return None
    if text == "all":
        return all_tracers()
    names = [] if text == "none" else [name.strip() for name in text.split(",")]
    for name in names:
        if name not in all_tracers():
            known = ", ".join(all_tracers())
            raise CommandError(f"there is no tracer {name!r}; there are {known}")
    return names
