"""Template tags of the navigation: links that the visitor may use."""

from __future__ import annotations

from typing import Any

from django import template
from django.conf import settings
from django.db import DatabaseError
from django.template import Context

from keys.models import User
from keys.selectors import may_trace_somewhere
from networks.models import Network

register = template.Library()


@register.simple_tag
def signup_is_open() -> bool:
    """Return whether to offer an account."""
    return settings.KEYS_SIGNUP


@register.simple_tag(takes_context=True)
def may_explore(context: Context, user: Any) -> bool:
    """Return whether the explorer shows at least one network to a visitor.

    A view can set `explorer_is_public` in the context to save a query.
    """
    if isinstance(user, User) and (user.is_staff or may_trace_somewhere(user)):
        return True
    known = context.get("explorer_is_public")
    if known is not None:
        return bool(known)
    try:
        return Network.objects.visible().filter(public_explorer=True).exists()
    except DatabaseError:  # documentation is readable without the database
        return False
