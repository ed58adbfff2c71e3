"""Access to the pages of a network, and to the traces on them.

Anyone sees the blocks, transactions and addresses of a public network. Others see them if
one of their keys may trace there. Calls and state changes always need such a key.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from http import HTTPStatus
from typing import Any

from django.contrib.auth.views import redirect_to_login
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render

from keys.models import User
from keys.selectors import tracers_of
from networks.models import Network, Tracer

View = Callable[..., HttpResponse]


class NotAdmitted(Http404):
    """Raised if a network does not exist, or the visitor may not see it."""


def login_unless_public(view: View) -> View:
    """Redirect anonymous visitors to the login, except on pages of public networks.

    A user who may not see the network reads how to request access.

    view: shows the network in its argument `slug`, or all networks without one.
    """

    @wraps(view)
    def restricted(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if not request.user.is_authenticated:
            public = Network.objects.visible().filter(public_explorer=True)
            if "slug" in kwargs:
                public = public.filter(slug=kwargs["slug"])
            if not public.exists():
                return redirect_to_login(request.get_full_path())
        try:
            return view(request, *args, **kwargs)
        except NotAdmitted:
            if not request.user.is_authenticated:
                raise
            page = "explore/not_admitted.html"
            return render(request, page, status=HTTPStatus.NOT_FOUND)

    return restricted


def admitted(request: HttpRequest, slug: str) -> tuple[Network, frozenset[str]]:
    """Return a network, and the tracers whose results the visitor may see.

    Staff see all networks and results. Others see visible networks only, with the results
    that one of their keys may use.
    Raises: NotAdmitted, both for an unknown network and for one that the visitor may not
    see.
    """
    network = Network.objects.filter(slug=slug).first()
    if network is None or not (network.is_visible or _is_staff(request)):
        raise NotAdmitted
    tracers = _tracers(request, network)
    if not tracers and not network.public_explorer and not _is_staff(request):
        raise NotAdmitted
    return network, tracers


def admitted_networks(request: HttpRequest) -> list[Network]:
    """Return the networks with blocks that the visitor may see."""
    inhabited = Network.objects.exclude(head_hash=None)
    if _is_staff(request):
        return list(inhabited)
    return [
        network
        for network in inhabited.visible()
        if network.public_explorer or _tracers(request, network)
    ]


def _tracers(request: HttpRequest, network: Network) -> frozenset[str]:
    user = request.user
    if not isinstance(user, User):
        return frozenset()
    if user.is_staff:
        return frozenset(Tracer.values)
    return tracers_of(user, network)


def _is_staff(request: HttpRequest) -> bool:
    return isinstance(request.user, User) and request.user.is_staff
