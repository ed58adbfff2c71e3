"""What the admin's pages show of the wallet."""

from __future__ import annotations

from typing import Any

from django import template
from django.utils import timezone

from wallets.overview import plots, tiles

register = template.Library()


@register.inclusion_tag("wallets/overview.html")
def wallet_overview() -> dict[str, Any]:
    """Show what there is in all wallets together, and what has happened lately."""
    return {"tiles": tiles(), "plots": plots(timezone.now())}
