"""Follow: import new blocks from the upstreams of networks, until stopped."""

from __future__ import annotations

from argparse import SUPPRESS, ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from config.management import serving
from config.management.followers import STOP_SECONDS, keep_followers
from networks.models import Network
from nodeapi.follower.run import run_follower
from server.children import STOP_SECONDS as FOLLOWER_STOP_SECONDS
from server.lifeline import end_with_parent


class Command(BaseCommand):
    help = (
        "Import new blocks from the networks' upstreams, in one process for each"
        " network. Runs until stopped."
    )

    # It starts even if the database is unavailable.
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "slug",
            nargs="*",
            metavar="SLUG",
            help="a network to follow; default: all that have enabled upstreams",
        )
        parser.add_argument(
            "--one", metavar="SLUG", help="follow one network in this process itself"
        )
        parser.add_argument("--lifeline", action="store_true", help=SUPPRESS)

    def handle(self, *args: Any, **options: Any) -> None:
        slug, slugs = options["one"], options["slug"]
        if slug is not None:
            if slugs:
                raise CommandError("--one takes the only network")
            self._follow(slug, has_lifeline=options["lifeline"])
            return
        serving.leave_on_signals()
        if options["lifeline"]:
            end_with_parent(STOP_SECONDS)
        keep_followers(slugs)

    def _follow(self, slug: str, *, has_lifeline: bool) -> None:
        stop = serving.stop_on_signals()
        if has_lifeline:
            end_with_parent(FOLLOWER_STOP_SECONDS)
        network = Network.objects.filter(slug=slug).first()
        if network is None:
            raise CommandError(f"there is no network {slug!r}")
        run_follower(network.pk, stop)
