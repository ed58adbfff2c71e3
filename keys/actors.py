"""The author of a change on a page: user and IP address."""

from __future__ import annotations

from django.http import HttpRequest

from keys.models import User
from keys.services import Actor


def user_of(request: HttpRequest) -> User:
    """Return the logged-in user. The page must require a log-in."""
    assert isinstance(request.user, User)
    return request.user


def actor_of(request: HttpRequest) -> Actor:
    """Return the logged-in user with their IP address, as the author of a change."""
    return Actor(user_of(request), request.META.get("REMOTE_ADDR") or None)
