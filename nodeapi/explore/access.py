"""Access to the pages of a network, and to the traces on them."""

from __future__ import annotations

from django.http import Http404, HttpRequest

from keys.models import User
from keys.selectors import tracers_of
from networks.models import Network, Tracer


def admitted(request: HttpRequest, slug: str) -> tuple[Network, frozenset[str]]:
    """Return a network, and the tracers whose results the user may see.

    Staff see all of them, customers those that one of their keys may use.
    Raises: Http404, both for an unknown network and for one that the user may not see.
    """
    user = request.user
    network = Network.objects.filter(slug=slug).first()
    if network is None or not isinstance(user, User):
        raise Http404
    if user.is_staff:
        return network, frozenset(Tracer.values)
    tracers = tracers_of(user, network)
    if not tracers:
        raise Http404
    return network, tracers


def admitted_networks(request: HttpRequest) -> list[Network]:
    """Return the networks with blocks that the user may see."""
    user = request.user
    if not isinstance(user, User):
        return []
    inhabited = Network.objects.exclude(head_hash=None)
    return [
        network for network in inhabited if user.is_staff or tracers_of(user, network)
    ]
