"""`manage.py rollup_usage`: delete old usage rows."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand
from django.utils import timezone

from keys.models import Span
from keys.usage.expiry import expire
from keys.usage.tiers import KEEP

_HOURS = KEEP[Span.MINUTE] // timedelta(hours=1)


class Command(BaseCommand):
    help = (
        f"Delete usage per minute after {_HOURS} hours, and usage per hour after"
        f" {KEEP[Span.HOUR].days} days. Usage per day is kept."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        removed = expire(timezone.now())
        self.stdout.write(self.style.SUCCESS(f"Deleted {removed} rows."))
