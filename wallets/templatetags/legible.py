"""Template filters for text from untrusted sources, and for addresses."""

from __future__ import annotations

from django import template

from abi import addresses
from legible.text import visible as _visible

register = template.Library()


@register.filter
def visible(text: str) -> str:
    """Return a text with each hidden character replaced by its code point, unescaped."""
    return _visible(text)


@register.filter
def with_checksum(address: str) -> str:
    """Return an EVM address with its EIP-55 checksum, any other address unchanged."""
    return addresses.with_checksum(address)
