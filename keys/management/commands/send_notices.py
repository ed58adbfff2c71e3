"""`manage.py send_notices`: send emails about quotas and expiries, and queued emails."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from keys.notices.job import run


class Command(BaseCommand):
    help = "Send the emails about quotas, expiries and changes by staff that are due."

    def handle(self, *args: Any, **options: Any) -> None:
        queued, sent = run()
        done = f"{queued} emails queued, {sent} sent."
        self.stdout.write(self.style.SUCCESS(done))
