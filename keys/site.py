"""URLs of the service, its pages and its networks, as clients reach them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from django.conf import settings
from django.http import HttpRequest
from django.http.request import split_domain_port, validate_host

from networks.models import Network

Headers = Mapping[bytes, bytes]
"""Headers of a request by name in lower case."""

MAX_HOST_LENGTH = 261
"""Characters of the longest Host header that a link repeats: those of a name in the
domain name system, a colon and a port."""

CACHED_HOSTS = 64
"""Hosts whose URLs are cached. Most services have one."""


def site_url(host: str) -> str:
    """Return the service's URL for the sender of a request, without a final slash.

    host: the request's Host header; "" without one. It is part of the URL only if
        PUBLIC_URL is not set and pages are served on that host (ALLOWED_HOSTS).
    """
    public = settings.PUBLIC_URL
    if public:
        return public
    if len(host) <= MAX_HOST_LENGTH and _is_served(host, tuple(settings.ALLOWED_HOSTS)):
        return f"{'https' if settings.HTTPS else 'http'}://{host}"
    return local_url()


def site_of(headers: Headers) -> str:
    """Return the base URL of links for the sender of a request; see `site_url`."""
    return site_url(headers.get(b"host", b"").decode("latin-1"))


def local_url() -> str:
    """Return the service's URL for clients on the same machine."""
    return f"http://127.0.0.1:{settings.PORT}"


def tracing_path(api_key_id: int, slug: str) -> str:
    """Return the path of the page on which an API key's owner requests tracing.

    slug: of the network. `keys.dashboard.urls` serves the page.
    """
    return f"/dashboard/keys/{api_key_id}/tracing/{slug}"


@lru_cache(CACHED_HOSTS)
def _is_served(host: str, allowed: tuple[str, ...]) -> bool:
    """Return whether a Host header is well-formed and names a host that has pages."""
    domain, _ = split_domain_port(host)
    return bool(domain) and validate_host(domain, allowed)


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
