"""HTTP headers of the explorer's pages."""

from __future__ import annotations

from django.views.decorators.cache import cache_control

private = cache_control(private=True, no_store=True)
"""Decorator: nobody stores the page, because it depends on the visitor."""
