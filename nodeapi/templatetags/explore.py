"""Template tags that lead to the explorer."""

from __future__ import annotations

from django import template
from django.template import Context

from networks.models import Network
from nodeapi.explore.access import admitted_networks

register = template.Library()

MAX_NETWORKS = 12
"""Networks that the home page names."""


@register.simple_tag(takes_context=True)
def explored_networks(context: Context) -> list[Network]:
    """Return the first networks whose pages the visitor may see."""
    return admitted_networks(context["request"])[:MAX_NETWORKS]
