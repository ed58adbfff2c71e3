"""Write the table of well-known selectors and topics from abi/standards.txt."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from abi.table import SOURCE, TABLE, write_table


class Command(BaseCommand):
    help = "Write the table of well-known functions, events and errors."

    # The table depends on a file only: neither a database nor valid settings are needed.
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        TABLE.write_bytes(write_table())
        self.stdout.write(self.style.SUCCESS(f"wrote {TABLE.name} from {SOURCE.name}"))
