"""URLs of the service and its networks."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest

from keys.site import local_url
from networks.models import Network


def base_url(request: HttpRequest) -> str:
    """Return the service's URL for the sender of a request, without a trailing slash.

    The request's Host header is shown only to its own sender.
    """
    return settings.PUBLIC_URL or f"{request.scheme}://{request.get_host()}"


def mailed_url(path: str) -> str:
    """Return the URL of a page for an email.

    It begins with PUBLIC_URL, or with a local address, and never with the host of a
    request: an attacker could request a mail to another user with a host of their own.
    """
    return (settings.PUBLIC_URL or local_url()) + path


def network_url(base: str, network: Network) -> str:
    """Return a network's base address, which a slash and a key complete."""
    return f"{base}/{network.slug}/v3"
