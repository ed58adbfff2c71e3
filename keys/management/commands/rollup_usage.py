"""`rollup_usage`: keep statistics small."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand
from django.utils import timezone

from keys.rollup import roll_up


class Command(BaseCommand):
    help = "Merge usage of minutes after 48 hours, and of hours after 90 days."

    def handle(self, *args: Any, **options: Any) -> None:
        merged = roll_up(timezone.now())
        self.stdout.write(self.style.SUCCESS(f"{merged} rows merged."))
