"""Template tags that show usage and limits."""

from __future__ import annotations

from typing import Any

from django import template
from django.template import Context
from django.utils import timezone

from keys.agreements import terms_of
from keys.models import ApiKey, Plan
from keys.plans import Terms, effective_limits
from keys.staff_facts import sums_of_today
from keys.usage.daily import quota_of
from keys.usage.panel import Chosen, UnknownChoice, panel

register = template.Library()


@register.filter
def grouped(count: int) -> str:
    """Format a count with separated thousands."""
    return f"{count:,}"


@register.filter
def burst(plan: Plan) -> int | None:
    """Return the burst of a plan, None without any. It can follow from the rate."""
    if plan.burst is None and plan.credits_per_second is None:
        return None
    limits = effective_limits(Terms(), terms_of(plan))
    return None if limits is None else limits.burst


@register.inclusion_tag("usage/key.html", takes_context=True)
def key_usage(context: Context, api_key: ApiKey) -> dict[str, Any]:
    """Show the usage of a key."""
    return {
        "panel": panel(_chosen(context), timezone.now(), api_key),
        "quota": quota_of(api_key),
    }


@register.inclusion_tag("usage/service.html", takes_context=True)
def service_usage(context: Context) -> dict[str, Any]:
    """Show the usage of all keys."""
    return {
        "panel": panel(_chosen(context), timezone.now()),
        "today": sums_of_today(),
    }


def _chosen(context: Context) -> Chosen:
    """Return the selection in the page's query, or the default."""
    try:
        return Chosen.from_query(context["request"].GET.dict())
    except UnknownChoice:
        return Chosen()
