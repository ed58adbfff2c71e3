"""Enroll second factor: what a member of staff needs before the first log-in with it."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from keys.models import User


class Command(BaseCommand):
    help = "Make a new authenticator for a member of staff; former ones are over."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("email", help="the account's address")

    def handle(self, *args: Any, **options: Any) -> None:
        if not settings.STAFF_SECOND_FACTOR:
            raise CommandError("STAFF_SECOND_FACTOR is off")
        from django_otp.plugins.otp_totp.models import TOTPDevice  # only installed then

        email = User.objects.normalize_email(options["email"])
        user = User.objects.filter(email=email, is_staff=True).first()
        if user is None:
            raise CommandError(f"{email} is no member of staff")
        TOTPDevice.objects.filter(user=user).delete()
        device = TOTPDevice.objects.create(user=user, name="authenticator")
        self.stdout.write(device.config_url)
