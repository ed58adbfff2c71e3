"""Create an authenticator for a staff user, who needs one to open the admin."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from keys.models import User


class Command(BaseCommand):
    help = (
        "Create an authenticator for a staff user. Former authenticators of the "
        "user are deleted."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("email", help="email address of the user")

    def handle(self, *args: Any, **options: Any) -> None:
        if not settings.STAFF_SECOND_FACTOR:
            raise CommandError(
                "STAFF_SECOND_FACTOR is off; turn it on before you run this command"
            )
        from django_otp.plugins.otp_totp.models import TOTPDevice  # optional

        email = User.objects.normalize_email(options["email"])
        user = User.objects.filter(email=email, is_staff=True).first()
        if user is None:
            raise CommandError(f"no staff user has the email address {email}")
        TOTPDevice.objects.filter(user=user).delete()
        device = TOTPDevice.objects.create(user=user, name="authenticator")
        self.stdout.write(device.config_url)
