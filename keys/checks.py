"""System check of a setting."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Tags, Warning, register


@register(Tags.security, deploy=True)
def check_mailed_links(**_: Any) -> list[CheckMessage]:
    """Warn if PUBLIC_URL is not set, because links in emails would then be useless."""
    if settings.PUBLIC_URL:
        return []
    return [
        Warning(
            "PUBLIC_URL is not set, so links in emails lead to 127.0.0.1.",
            hint="Set it to the address for browsers, such as https://rpc.example.org.",
            id="keys.W001",
        )
    ]
