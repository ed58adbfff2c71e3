"""Where the service and its networks are reached."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest

from keys import conf
from networks.models import Network


def base_url(request: HttpRequest) -> str:
    """Return the service's address for whoever has sent a request, without a slash.

    What the request says of its host is good enough to be shown to him who sent it.
    """
    return conf.public_url() or f"{request.scheme}://{request.get_host()}"


def mailed_url(path: str) -> str:
    """Return the address of a page for a mail; of this machine, if no other is set."""
    base = conf.public_url() or f"http://127.0.0.1:{settings.PORT}"
    return base + path


def network_url(base: str, network: Network) -> str:
    """Return a network's base address, which a slash and a key complete."""
    return f"{base}/{network.slug}/v3"
