"""System checks of the key on the home page."""

from __future__ import annotations

from typing import Any

from django.core.checks import CheckMessage, Error, register

from keys.format import is_well_formed
from nodeapi import conf


@register
def check_home_api_key(**_: Any) -> list[CheckMessage]:
    """Return an error if HOME_API_KEY is not an API key: the examples would fail."""
    key = conf.home_api_key()
    if not key or is_well_formed(key):
        return []
    return [
        Error(
            "HOME_API_KEY is not a complete API key.",
            hint="`manage.py issue_key` creates a key, nk_ and 36 characters.",
            id="nodeapi.E002",
        )
    ]
