"""`prune_wallets`: delete expired and old rows of the wallet."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from wallets.services.pruning import prune


class Command(BaseCommand):
    help = (
        "Delete expired codes and tokens, old requests and old log lines of the "
        "wallet. Web processes do this hourly."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        deleted = prune()
        said = ", ".join(f"{count} {name}" for name, count in deleted.items())
        self.stdout.write(self.style.SUCCESS(f"Deleted {said}."))
