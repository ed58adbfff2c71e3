"""Document settings: write docs/settings.md from the declarations."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from config import env, settings_page


class Command(BaseCommand):
    help = "Write docs/settings.md from config/variables/."

    # The page depends on code only: neither a database nor valid settings are needed.
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        (env.BASE_DIR / settings_page.PATH).write_text(settings_page.settings_page())
        self.stdout.write(self.style.SUCCESS(f"wrote {settings_page.PATH}"))
