"""What all pages of the dashboard have in common: who may see them, and whose they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from django.views.decorators.cache import cache_control

from keys.models import ApiKey, User
from keys.policy import with_own_scripts
from keys.services import Actor

_View = Callable[..., HttpResponseBase]


def dashboard_page(view: _View) -> _View:
    """Show a view to those who are logged in, keep it out of caches and frames."""
    private = cache_control(private=True, no_store=True)
    return with_own_scripts(private(login_required(view)))


def user_of(request: HttpRequest) -> User:
    """Return who is logged in; the page has seen to it that somebody is."""
    return cast(User, request.user)


def actor_of(request: HttpRequest) -> Actor:
    """Return the customer, at his address, as the author of a change."""
    return Actor(user_of(request), request.META.get("REMOTE_ADDR") or None)


def own_key(request: HttpRequest, pk: int) -> ApiKey:
    """Return a key of the customer, with its secrets, networks and owner.

    Raises: Http404, the same for a key that is another's, was deleted, or never was.
    """
    own = ApiKey.objects.kept().filter(owner=user_of(request))
    return get_object_or_404(
        own.select_related("owner").prefetch_related("versions__use", "networks"),
        pk=pk,
    )
