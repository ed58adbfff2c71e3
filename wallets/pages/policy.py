"""What all pages of the wallet have in common: who may see them, and what they may do."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, cast

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.views.decorators.cache import cache_control

from keys.models import User
from nodeapi.policy import CONTENT_SECURITY_POLICY, without_scripts
from wallets.changes import Cause
from wallets.models import Actor

_SCRIPTED = f"{CONTENT_SECURITY_POLICY}; script-src 'self'; connect-src 'self'"

_View = Callable[..., HttpResponseBase]


def wallet_page(view: _View) -> _View:
    """Show a view to those who are logged in, keep it out of caches and frames.

    What the page is about belongs to the user: views look everything up among what is
    his, and what is another's is not found.
    """
    private = cache_control(private=True, no_store=True)
    return without_scripts(private(login_required(view)))


def with_own_scripts(view: _View) -> _View:
    """Let a page run the scripts of this site, which may ask this site only."""

    @wraps(view)
    def scripted(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        response = view(request, *args, **kwargs)
        response["Content-Security-Policy"] = _SCRIPTED
        return response

    return scripted


def user_of(request: HttpRequest) -> User:
    """Return who is logged in; the page has seen to it that somebody is."""
    return cast(User, request.user)


def cause_of(request: HttpRequest) -> Cause:
    """Return the user, at his address, as the cause of a change."""
    return Cause(Actor.USER, request.META.get("REMOTE_ADDR") or None)
