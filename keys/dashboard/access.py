"""Access control that all pages of the dashboard share."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import wraps
from http import HTTPStatus
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.cache import cache_control

from keys.actors import user_of
from keys.models import ApiKey, KeyEvent, KeyVersion, User
from keys.policy import with_own_scripts
from networks.models import Network

MAX_CHANGES_AN_HOUR = 200
"""Most changes by one customer, for all keys together. It is far more than a person
makes by hand. The limit exists because each change adds a row to the audit log, which
is never deleted."""

_View = Callable[..., HttpResponseBase]


def dashboard_page(view: _View) -> _View:
    """Require a login for a view, and forbid caching and framing of its response."""
    private = cache_control(private=True, no_store=True)
    return with_own_scripts(private(login_required(_bounded(_explained(view)))))


def own_key(request: HttpRequest, pk: int) -> ApiKey:
    """Return a key of the customer, with its secrets, networks and owner prefetched.

    Raises: Http404 if the key does not exist, was deleted, or belongs to another user.
    """
    own = ApiKey.objects.kept().filter(owner=user_of(request))
    return get_object_or_404(
        own.select_related("owner").prefetch_related(
            "versions__use__last_network", "networks"
        ),
        pk=pk,
    )


def own_version(key: ApiKey, pk: int) -> KeyVersion:
    """Return a version of a key. Raises: Http404 if the key has no such version."""
    return get_object_or_404(KeyVersion, api_key=key, pk=pk)


def opened_networks(key: ApiKey) -> list[Network]:
    """Return the networks that a key grants access to."""
    return list(key.networks.all()) or list(Network.objects.all())


def _bounded(view: _View) -> _View:
    """Respond with 429 if the user has made too many changes within an hour."""

    @wraps(view)
    def bounded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if request.method == "POST" and _is_too_busy(user_of(request)):
            status = HTTPStatus.TOO_MANY_REQUESTS
            return render(request, "dashboard/busy.html", status=status)
        return view(request, *args, **kwargs)

    return bounded


def _explained(view: _View) -> _View:
    """Show a ValidationError that the view has not handled, and redirect to the list.

    This happens when the key is deleted in another window while the request is handled.
    """

    @wraps(view)
    def explained(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        try:
            return view(request, *args, **kwargs)
        except ValidationError as error:
            messages.error(request, " ".join(error.messages))
            return redirect("dashboard:keys")

    return explained


def _is_too_busy(user: User) -> bool:
    since = timezone.now() - timedelta(hours=1)
    changes = KeyEvent.objects.filter(actor=user, at__gt=since)
    return changes[:MAX_CHANGES_AN_HOUR].count() >= MAX_CHANGES_AN_HOUR
