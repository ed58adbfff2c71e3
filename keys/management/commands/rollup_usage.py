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
        f"Delete old usage: by the minute after {_HOURS} hours, by the hour after"
        f" {KEEP[Span.HOUR].days} days. Usage by the day is kept."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        removed = expire(timezone.now())
        self.stdout.write(self.style.SUCCESS(f"{removed} rows removed."))
