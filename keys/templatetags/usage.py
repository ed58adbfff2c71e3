"""Template tags that show usage in the admin."""

from __future__ import annotations

from typing import Any

from django import template
from django.template import Context
from django.utils import timezone

from keys.models import AccessRequest, AccessStatus, ApiKey
from keys.usage.daily import busiest_today, quota_of, sums_today
from keys.usage.panel import Chosen, UnknownChoice, panel

register = template.Library()

BUSIEST = 10
"""Keys that the admin's first page names."""


@register.filter
def grouped(count: int) -> str:
    """Format a count with separated thousands."""
    return f"{count:,}"


@register.inclusion_tag("usage/key.html", takes_context=True)
def key_usage(context: Context, api_key: ApiKey) -> dict[str, Any]:
    """Show the usage of a key."""
    return {
        "panel": panel(_chosen(context), timezone.now(), api_key),
        "quota": quota_of(api_key),
    }


@register.inclusion_tag("usage/service.html", takes_context=True)
def service_usage(context: Context) -> dict[str, Any]:
    """Show the usage of all keys, and the requests that staff have to decide."""
    waiting = AccessRequest.objects.filter(status=AccessStatus.PENDING)
    return {
        "panel": panel(_chosen(context), timezone.now()),
        "today": sums_today(),
        "busiest": busiest_today(BUSIEST),
        "waiting": waiting.count(),
    }


def _chosen(context: Context) -> Chosen:
    """Return the selection in the page's query, or the default."""
    try:
        return Chosen.from_query(context["request"].GET.dict())
    except UnknownChoice:
        return Chosen()
