"""A template tag for the admin's page on the wallet."""

from __future__ import annotations

from typing import Any

from django import template
from django.utils import timezone

from wallets.overview import plots, tiles

register = template.Library()


@register.inclusion_tag("wallets/overview.html")
def wallet_overview() -> dict[str, Any]:
    """Show counts and charts of all wallets."""
    return {"tiles": tiles(), "plots": plots(timezone.now())}
