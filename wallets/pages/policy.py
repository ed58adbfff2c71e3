"""Access rules of all pages of the wallet."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.views.decorators.cache import cache_control

from keys.accounts.acting import user_of
from keys.accounts.logged_in import logged_in
from keys.policy import without_scripts
from wallets.changes import Cause
from wallets.models import Actor

__all__ = ["cause_of", "user_of", "wallet_page"]

_View = Callable[..., HttpResponseBase]


def wallet_page(view: _View) -> _View:
    """Require a log-in for a view, and forbid caching and framing of its page.

    Views look up the user's own rows only. The rows of other users are not found.
    """
    private = cache_control(private=True, no_store=True)
    return without_scripts(private(logged_in(view)))


def cause_of(request: HttpRequest) -> Cause:
    """Return the user, with their IP address, as the cause of a change."""
    return Cause(Actor.USER, request.META.get("REMOTE_ADDR") or None)
