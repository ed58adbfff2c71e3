"""The author of a change on a page: user and IP address."""

from __future__ import annotations

from django.http import HttpRequest

from keys.acting import role_for_log
from keys.models import User
from keys.services import Actor


def user_of(request: HttpRequest) -> User:
    """Return the logged-in user. The page must require a log-in."""
    assert isinstance(request.user, User)
    return request.user


def actor_of(request: HttpRequest) -> Actor:
    """Return the logged-in user as the author of a change.

    The actor has their IP address, and on the dashboard their role in the account.
    """
    return Actor(
        user_of(request),
        request.META.get("REMOTE_ADDR") or None,
        role=role_for_log(request),
    )
