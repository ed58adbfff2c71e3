"""What all pages of the wallet have in common: who may see them, and what they may do."""

from __future__ import annotations

from collections.abc import Callable

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.views.decorators.cache import cache_control

from keys.actors import user_of
from keys.policy import without_scripts
from wallets.changes import Cause
from wallets.models import Actor

__all__ = ["cause_of", "user_of", "wallet_page"]

_View = Callable[..., HttpResponseBase]


def wallet_page(view: _View) -> _View:
    """Show a view to those who are logged in, keep it out of caches and frames.

    What the page is about belongs to the user: views look everything up among what is
    his, and what is another's is not found.
    """
    private = cache_control(private=True, no_store=True)
    return without_scripts(private(login_required(view)))


def cause_of(request: HttpRequest) -> Cause:
    """Return the user, at his address, as the cause of a change."""
    return Cause(Actor.USER, request.META.get("REMOTE_ADDR") or None)
