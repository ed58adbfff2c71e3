"""Settings of the networks app. Their defaults are declared in config/variables/."""

from __future__ import annotations

from django.conf import settings


def default_network() -> str:
    """Return the slug of the network for requests that name no network.

    The setting is DEFAULT_NETWORK. If it is empty or unknown, the oldest network is used.
    """
    return settings.DEFAULT_NETWORK
