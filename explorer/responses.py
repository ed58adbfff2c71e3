"""HTTP headers of the explorer's pages."""

from __future__ import annotations

from django.views.decorators.cache import cache_control

private = cache_control(private=True, no_store=True)
"""Decorator: forbids caching, because the page depends on the visitor."""
