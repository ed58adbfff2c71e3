"""A template filter for text from untrusted sources."""

from __future__ import annotations

from django import template

from legible.text import visible as _visible

register = template.Library()


@register.filter
def visible(text: str) -> str:
    """Return a text with each hidden character replaced by its code point, unescaped."""
    return _visible(text)
