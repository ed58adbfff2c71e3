"""What all pages of the dashboard have in common: who may see them, and whose they are."""

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
"""Of all keys of a customer: far more than anybody makes by hand. Each is a row in a log
of which nothing is ever removed."""

_View = Callable[..., HttpResponseBase]


def dashboard_page(view: _View) -> _View:
    """Show a view to those who are logged in, keep it out of caches and frames."""
    private = cache_control(private=True, no_store=True)
    return with_own_scripts(private(login_required(_bounded(_explained(view)))))


def own_key(request: HttpRequest, pk: int) -> ApiKey:
    """Return a key of the customer, with its secrets, networks and owner.

    Raises: Http404, the same for a key that is another's, was deleted, or never was.
    """
    own = ApiKey.objects.kept().filter(owner=user_of(request))
    return get_object_or_404(
        own.select_related("owner").prefetch_related(
            "versions__use__last_network", "networks"
        ),
        pk=pk,
    )


def own_version(key: ApiKey, pk: int) -> KeyVersion:
    """Return a secret of a key. Raises: Http404."""
    return get_object_or_404(KeyVersion, api_key=key, pk=pk)


def opened_networks(key: ApiKey) -> list[Network]:
    """Return the networks that a key opens."""
    return list(key.networks.all()) or list(Network.objects.all())


def _bounded(view: _View) -> _View:
    """Refuse the changes of somebody who has made very many just now."""

    @wraps(view)
    def bounded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if request.method == "POST" and _is_too_busy(user_of(request)):
            status = HTTPStatus.TOO_MANY_REQUESTS
            return render(request, "dashboard/busy.html", status=status)
        return view(request, *args, **kwargs)

    return bounded


def _explained(view: _View) -> _View:
    """Say what a change was refused for where the view has not: it came too late.

    The key was deleted in another window after this request had found it.
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
