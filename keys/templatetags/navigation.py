"""Template tags of the navigation: links that the visitor may use."""

from __future__ import annotations

from typing import Any

from django import template
from django.db import DatabaseError

from keys import conf
from keys.models import User
from keys.selectors import may_trace_somewhere
from networks.models import Network

register = template.Library()


@register.simple_tag
def signup_is_open() -> bool:
    """Return whether to offer an account."""
    return conf.signup_is_open()


@register.simple_tag
def may_explore(user: Any) -> bool:
    """Return whether the explorer shows at least one network to a visitor."""
    if isinstance(user, User) and (user.is_staff or may_trace_somewhere(user)):
        return True
    try:
        return Network.objects.visible().filter(public_explorer=True).exists()
    except DatabaseError:  # documentation is readable without the database
        return False
