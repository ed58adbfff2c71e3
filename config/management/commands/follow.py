"""Follow: import new blocks from the upstreams of networks, until stopped."""

from __future__ import annotations

import logging
import threading
from argparse import SUPPRESS, ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import OperationalError, connection

from config.management import serving
from config.management.followers import STOP_SECONDS, keep_followers
from networks.models import Network
from nodeapi.follower.run import run_follower
from server.children import STOP_SECONDS as FOLLOWER_STOP_SECONDS
from server.lifeline import end_with_parent

logger = logging.getLogger(__name__)

RETRY_SECONDS = 1.0
"""Pause between two attempts to read the network."""


class Command(BaseCommand):
    help = (
        "Import new blocks from the upstreams of networks until stopped, in one "
        "process for each network."
    )

    # It starts even if the database is unavailable.
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "slug",
            nargs="*",
            metavar="SLUG",
            help="slug of a network; default: all networks with enabled upstreams",
        )
        parser.add_argument(
            "--one", metavar="SLUG", help="follow only this network, in this process"
        )
        parser.add_argument("--lifeline", action="store_true", help=SUPPRESS)

    def handle(self, *args: Any, **options: Any) -> None:
        slug, slugs = options["one"], options["slug"]
        if slug is not None:
            if slugs:
                raise CommandError("--one SLUG can't be combined with other slugs")
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
        network_id = _network_id(slug, stop)
        if network_id is not None:
            run_follower(network_id, stop)


def _network_id(slug: str, stop: threading.Event) -> int | None:
    """Return the id of a network, as soon as the database is available.

    Returns: None if `stop` is set before. Raises: CommandError if there is no network.
    """
    while not stop.is_set():
        try:
            return Network.objects.values_list("pk", flat=True).get(slug=slug)
        except Network.DoesNotExist:
            raise CommandError(f"there is no network {slug!r}") from None
        except OperationalError as error:
            logger.warning("network %s: the database failed: %s", slug, error)
            connection.close()
            stop.wait(RETRY_SECONDS)
    return None
