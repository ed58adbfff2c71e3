"""`manage.py issue_api_token`."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError

from keys.management.arguments import read_moment
from keys.models import Scope, User
from keys.services import issue_token


class Command(BaseCommand):
    help = "Issue a token for the management API and show it once."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--owner",
            required=True,
            metavar="EMAIL",
            help="email address of the staff user for whom the program acts",
        )
        parser.add_argument("--name", required=True, help="name of the program")
        parser.add_argument(
            "--scope",
            action="append",
            required=True,
            choices=Scope.values,
            help="a scope of the token; can be repeated",
        )
        parser.add_argument(
            "--expires",
            metavar="ISO",
            help="expiry in ISO 8601; UTC if it has no offset",
        )
        parser.add_argument("--json", action="store_true", help="print JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        email = User.objects.normalize_email(options["owner"])
        owner = User.objects.filter(email=email).first()
        if owner is None:
            raise CommandError(f"no user has the email address {email}")
        try:
            issued = issue_token(
                owner=owner,
                name=options["name"],
                scopes=options["scope"],
                expires_at=read_moment(options["expires"]),
            )
        except ValidationError as error:
            raise CommandError(" ".join(error.messages)) from error
        if options["json"]:
            token = issued.token
            shown = {
                "token": issued.secret,
                "hint": token.hint,
                "owner": owner.email,
                "scopes": token.scopes,
                "expires_at": token.expires_at and token.expires_at.isoformat(),
            }
            self.stdout.write(json.dumps(shown))
        else:
            self.stdout.write(issued.secret)
            self.stderr.write("This is the only time that the token is shown.")
