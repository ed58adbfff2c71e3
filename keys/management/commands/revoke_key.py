"""`manage.py revoke_key`."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError

from keys.management.arguments import read_key
from keys.services import revoke_version


class Command(BaseCommand):
    help = "Revoke a secret of an API key permanently. Requests with it are rejected."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("key", help="the secret, or its hint: nk_4fGh…Z91k")
        parser.add_argument(
            "--reason", required=True, help="reason, which the customer can read"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        version = read_key(options["key"])
        try:
            revoke_version(version=version, reason=options["reason"])
        except ValidationError as error:
            raise CommandError(" ".join(error.messages)) from error
        self.stdout.write(self.style.SUCCESS(f"{version.hint}: revoked"))
