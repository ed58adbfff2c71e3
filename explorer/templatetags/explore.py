"""Template tags of the explorer: links to networks and addresses, texts to copy."""

from __future__ import annotations

from django import template
from django.template import Context
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from explorer.access import admitted_networks
from legible import words
from networks.models import Network

register = template.Library()

MAX_NETWORKS = 12
"""Networks that the home page names."""


@register.simple_tag(takes_context=True)
def explored_networks(context: Context) -> list[Network]:
    """Return the first networks whose pages the visitor may see."""
    return admitted_networks(context["request"])[:MAX_NETWORKS]


@register.simple_tag
def address_link(slug: str, text: str, style: str = "") -> SafeString:
    """Return a link to an address's page, which the script of the page lets copy.

    slug: the network's. text: the address with its checksum.
    style: `short` shows the beginning and the end of the address.
    """
    path = f"{reverse('explore:network', args=[slug])}address/{text}"
    shown = words.shortened(text) if style == "short" else text
    return format_html(
        '<a class="address" href="{}" title="{}" data-copy="the address"'
        ' data-copy-text="{}"><code>{}</code></a>',
        path,
        text,
        text,
        shown,
    )


@register.simple_tag
def copied(text: str, what: str, style: str = "") -> SafeString:
    """Return a text that the script of the page lets copy.

    what: its name for screen readers, such as `the block hash`.
    style: `short` shows the beginning and the end of the text.
    """
    shown = words.shortened(text) if style == "short" else text
    return format_html(
        '<code title="{}" data-copy="{}" data-copy-text="{}">{}</code>',
        text,
        what,
        text,
        shown,
    )
