"""Who may look at the blocks and traces of a network, and at what of them."""

from __future__ import annotations

from django.http import Http404, HttpRequest

from keys.models import User
from keys.selectors import tracers_of
from networks.models import Network, Tracer


def admitted(request: HttpRequest, slug: str) -> tuple[Network, frozenset[str]]:
    """Return a network, and the tracers whose answers may be shown.

    Staff sees everything, a customer what one of his keys may trace.
    Raises: Http404, the same for a network that is not there and for one that is not
        to be seen.
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
    """Return the networks that may be looked at and have blocks."""
    user = request.user
    if not isinstance(user, User):
        return []
    inhabited = Network.objects.exclude(head_hash=None)
    return [
        network for network in inhabited if user.is_staff or tracers_of(user, network)
    ]
