"""Access control that all pages of the dashboard share.

A page acts for one customer account, and needs a role in it. The least role is `viewer`
to look and `developer` to change something, unless the page declares others.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import wraps
from http import HTTPStatus
from typing import Any, overload

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.cache import cache_control

from keys.accounts.acting import acting_of, resolve_acting, user_of
from keys.accounts.logged_in import logged_in
from keys.models import ApiKey, KeyEvent, KeyVersion, MemberEvent, Role, User
from keys.policy import with_own_scripts
from networks.models import Network

MAX_CHANGES_AN_HOUR = 200
"""Most changes by one customer, for all keys together. It is far more than a person
makes by hand. The limit exists because each change adds a row to the audit log, whose
rows are never deleted."""

_View = Callable[..., HttpResponseBase]


@overload
def dashboard_page(view: _View) -> _View: ...


@overload
def dashboard_page(
    *, to_look: Role = Role.VIEWER, to_change: Role = Role.DEVELOPER
) -> Callable[[_View], _View]: ...


def dashboard_page(
    view: _View | None = None,
    *,
    to_look: Role = Role.VIEWER,
    to_change: Role = Role.DEVELOPER,
) -> _View | Callable[[_View], _View]:
    """Require a login and a role for a view, and forbid caching and framing.

    A view of a key takes its id as `pk`, and acts for the account of the key.

    to_look: the least role for GET. A page whose only use is a change needs the role of
        the change.
    to_change: the least role for POST.
    """

    def protect(view: _View) -> _View:
        private = cache_control(private=True, no_store=True)
        permitted = _permitted(_bounded(_explained(view)), to_look, to_change)
        return with_own_scripts(private(logged_in(permitted)))

    return protect if view is None else protect(view)


def own_key(request: HttpRequest, pk: int) -> ApiKey:
    """Return a key of the account, with its secrets, networks and owner prefetched.

    Raises: Http404 if the key does not exist, was deleted, or is of another account.
    """
    own = ApiKey.objects.kept().filter(owner=acting_of(request).account)
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
    """Return the networks that a key grants access to and that customers see."""
    named = list(key.networks.all())
    if named:
        return [network for network in named if network.is_visible]
    return list(Network.objects.visible())


def _permitted(view: _View, to_look: Role, to_change: Role) -> _View:
    """Respond with 403 if the user's role in the account is not sufficient.

    The response is 404 if the user has no role in it, as for a key that does not exist.
    """

    @wraps(view)
    def permitted(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        is_look = request.method in ("GET", "HEAD")
        needed = to_look if is_look else to_change
        acting = resolve_acting(request, user_of(request), kwargs.get("pk"))
        if not acting.role.includes(needed):
            context = {"needed": needed}
            status = HTTPStatus.FORBIDDEN
            return render(request, "dashboard/forbidden.html", context, status=status)
        return view(request, *args, **kwargs)

    return permitted


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
    changes = sum(
        model.objects.filter(actor=user, at__gt=since)[:MAX_CHANGES_AN_HOUR].count()
        for model in (KeyEvent, MemberEvent)
    )
    return changes >= MAX_CHANGES_AN_HOUR
