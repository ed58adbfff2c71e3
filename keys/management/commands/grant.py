"""`manage.py grant`."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from keys.management.arguments import read_key, read_moment
from keys.models import Capability, Entitlement, KeyVersion
from keys.services import grant_entitlement, withdraw_entitlement
from networks.management.arguments import read_networks, read_tracers
from networks.models import Network


class Command(BaseCommand):
    help = (
        "Grant an API key tracing on networks. This replaces its entitlements on these "
        "networks."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "key", help="a secret of the key, or its hint: nk_4fGh…Z91k"
        )
        parser.add_argument(
            "--network",
            action="append",
            required=True,
            metavar="SLUG",
            help="slug of a network; can be repeated",
        )
        terms = parser.add_argument_group("terms")
        terms.add_argument(
            "--tracers",
            default="all",
            metavar="A,B",
            help="names of tracers; default: all that the network offers",
        )
        terms.add_argument(
            "--expires",
            metavar="ISO",
            help="expiry in ISO 8601; UTC if it has no offset",
        )
        terms.add_argument(
            "--note", default="", help="why it is granted; visible to staff only"
        )
        parser.add_argument(
            "--withdraw", action="store_true", help="withdraw the entitlements instead"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        version = read_key(options["key"])
        networks = read_networks(options["network"])
        try:
            with transaction.atomic():
                for network in networks:
                    if options["withdraw"]:
                        _withdraw(version, network)
                    else:
                        _grant(version, network, options)
        except ValidationError as error:
            raise CommandError(" ".join(error.messages)) from error
        done = "withdrawn" if options["withdraw"] else "granted"
        where = ", ".join(network.slug for network in networks)
        self.stdout.write(
            self.style.SUCCESS(f"{version.hint}: tracing {done} on {where}")
        )


def _grant(version: KeyVersion, network: Network, options: dict[str, Any]) -> None:
    tracers = read_tracers(options["tracers"])
    if not tracers:
        raise CommandError(
            "--tracers needs at least one tracer; use --withdraw to withdraw tracing"
        )
    grant_entitlement(
        api_key=version.api_key,
        network=network,
        tracers=[] if options["tracers"] == "all" else tracers,
        expires_at=read_moment(options["expires"]),
        note=options["note"],
    )


def _withdraw(version: KeyVersion, network: Network) -> None:
    try:
        entitlement = version.api_key.entitlements.get(
            network=network, capability=Capability.TRACE
        )
    except Entitlement.DoesNotExist:
        raise CommandError(
            f"{version.hint} has no entitlement for tracing on {network}"
        ) from None
    withdraw_entitlement(entitlement=entitlement)
