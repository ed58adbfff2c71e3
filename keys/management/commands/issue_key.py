"""`manage.py issue_key`."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from keys.management.arguments import read_moment, read_plan
from keys.models import Plan
from keys.services import IssuedKey, get_or_create_customer, issue_key
from keys.services.limits import set_limits
from networks.management.arguments import read_networks


class Command(BaseCommand):
    help = "Issue an API key and show its secret once."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--owner",
            required=True,
            metavar="EMAIL",
            help="email address of the customer, who is created if necessary",
        )
        parser.add_argument("--name", default="", help="name of the key")
        parser.add_argument(
            "--network",
            action="append",
            default=[],
            metavar="SLUG",
            help="slug of a network for which the key is valid; default: all networks",
        )
        parser.add_argument(
            "--plan",
            metavar="SLUG",
            help="slug of the key's plan; default: the default plan",
        )
        parser.add_argument(
            "--debug",
            action="store_true",
            help="grant tracing on the networks of --network, or on all that exist now",
        )
        parser.add_argument(
            "--expires",
            metavar="ISO",
            help="expiry in ISO 8601; UTC if it has no offset",
        )
        parser.add_argument("--json", action="store_true", help="print JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        plan = read_plan(options["plan"])
        try:
            with transaction.atomic():
                issued = issue_key(
                    owner=get_or_create_customer(email=options["owner"]),
                    name=options["name"],
                    networks=read_networks(options["network"]),
                    may_trace=options["debug"],
                    expires_at=read_moment(options["expires"]),
                )
                if plan is not None:
                    set_limits(api_key=issued.api_key, plan=plan)
        except ValidationError as error:
            raise CommandError(" ".join(error.messages)) from error
        if options["json"]:
            self.stdout.write(json.dumps(_as_json(issued, plan)))
        else:
            self.stdout.write(issued.secret)
            self.stderr.write("This is the only time that the secret is shown.")


def _as_json(issued: IssuedKey, plan: Plan | None) -> dict[str, Any]:
    expires_at = issued.api_key.expires_at
    return {
        "api_key": issued.secret,
        "hint": issued.version.hint,
        "owner": issued.api_key.owner.email,
        "networks": [network.slug for network in issued.api_key.networks.all()] or None,
        "tracing": [
            entitlement.network.slug
            for entitlement in issued.api_key.entitlements.select_related("network")
        ],
        "plan": plan.slug if plan else None,
        "expires_at": expires_at.isoformat() if expires_at else None,
    }
