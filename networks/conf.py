"""Settings of the networks app, with their defaults."""

from __future__ import annotations

from django.conf import settings


def default_network() -> str:
    """Return the slug of the network that answers where no other is named.

    DEFAULT_NETWORK; empty or unknown: the one that was created first.
    """
    return str(getattr(settings, "DEFAULT_NETWORK", ""))
