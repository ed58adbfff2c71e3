"""Texts of strangers, in templates."""

from __future__ import annotations

from django import template

from wallets.signing.text import visible as _visible

register = template.Library()


@register.filter
def visible(text: str) -> str:
    """Return a text with each hidden character as its number, still to be escaped."""
    return _visible(text)
