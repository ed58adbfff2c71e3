"""`rollup_usage`: keep statistics small."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand
from django.utils import timezone

from keys.rollup import KEEP_HOURS, KEEP_MINUTES, roll_up

HOUR = timedelta(hours=1)


class Command(BaseCommand):
    help = (
        f"Merge usage of minutes after {KEEP_MINUTES // HOUR} hours,"
        f" and of hours after {KEEP_HOURS.days} days."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        merged = roll_up(timezone.now())
        self.stdout.write(self.style.SUCCESS(f"{merged} rows merged."))
