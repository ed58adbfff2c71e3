"""What the navigation of each page asks: where this visitor may go."""

from __future__ import annotations

from typing import Any

from django import template

from keys import conf
from keys.models import User
from keys.selectors import may_trace_somewhere

register = template.Library()


@register.simple_tag
def signup_is_open() -> bool:
    """Return whether to offer an account."""
    return conf.signup_is_open()


@register.simple_tag
def may_explore(user: Any) -> bool:
    """Return whether there is a network that the pages of blocks show to a visitor."""
    return isinstance(user, User) and (user.is_staff or may_trace_somewhere(user))
