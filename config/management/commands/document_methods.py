"""Document methods: write docs/methods.md from the registry."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from config import env, methods_page


class Command(BaseCommand):
    help = "Write docs/methods.md from the registry of methods."

    # The page depends on code only: neither a database nor valid settings are needed.
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        (env.BASE_DIR / methods_page.PATH).write_text(methods_page.methods_page())
        self.stdout.write(self.style.SUCCESS(f"wrote {methods_page.PATH}"))
