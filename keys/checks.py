"""System checks of the settings of keys and accounts."""

from __future__ import annotations

import re
from typing import Any

from django.core.checks import CheckMessage, Error, Tags, Warning, register

from keys import conf

_BASE = re.compile(r"https?://[^/\s?#@]+")


@register
def check_public_url(**_: Any) -> list[CheckMessage]:
    """Report a PUBLIC_URL that is not the URL of a host."""
    url = conf.public_url()
    if not url or _BASE.fullmatch(url):
        return []
    return [
        Error(
            f"PUBLIC_URL {url!r} is not the URL of a host.",
            hint="Use http:// or https:// and a host, such as https://rpc.example.org.",
            id="keys.E001",
        )
    ]


@register
def check_keys_per_customer(**_: Any) -> list[CheckMessage]:
    """Return an error if KEYS_PER_CUSTOMER is negative."""
    if conf.keys_per_customer() >= 0:
        return []
    return [
        Error(
            "KEYS_PER_CUSTOMER is negative.",
            hint="Use 0 if staff create all keys.",
            id="keys.E002",
        )
    ]


@register(Tags.security, deploy=True)
def check_mailed_links(**_: Any) -> list[CheckMessage]:
    """Warn if PUBLIC_URL is not set, because links in emails would then be useless."""
    if conf.public_url():
        return []
    return [
        Warning(
            "PUBLIC_URL is not set, so links in emails lead to 127.0.0.1.",
            hint="Set it to the address for browsers, such as https://rpc.example.org.",
            id="keys.W001",
        )
    ]
