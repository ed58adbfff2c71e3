"""Who makes a change on a page, and from where."""

from __future__ import annotations

from django.http import HttpRequest

from keys.models import User
from keys.services import Actor


def user_of(request: HttpRequest) -> User:
    """Return who is logged in; the page has seen to it that somebody is."""
    assert isinstance(request.user, User)
    return request.user


def actor_of(request: HttpRequest) -> Actor:
    """Return who is logged in, at his address, as the author of a change."""
    return Actor(user_of(request), request.META.get("REMOTE_ADDR") or None)
