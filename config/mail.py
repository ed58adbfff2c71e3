"""Parsing of MAIL_URL, such as `smtps://user:password@mail.example.org`."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote, urlsplit

_PORTS = {"smtp": 25, "smtp+starttls": 587, "smtps": 465}
"""The default port of each scheme. Source: RFC 8314 for implicit TLS"""


def mail_settings(url: str) -> dict[str, Any]:
    """Return Django's settings for a mail server.

    url: smtp://, smtp+starttls:// or smtps://, with percent-encoded parts; with "",
        emails are printed to the console.
    Raises: ValueError "must …", without the password.
    """
    if not url:
        return {"EMAIL_BACKEND": "django.core.mail.backends.console.EmailBackend"}
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ValueError(
            "must be a URL; user and password must be percent-encoded"
        ) from None
    if parts.scheme not in _PORTS or not parts.hostname:
        known = ", ".join(f"{scheme}://host" for scheme in _PORTS)
        raise ValueError(f"must be a URL of one of the forms {known}")
    return {
        "EMAIL_BACKEND": "django.core.mail.backends.smtp.EmailBackend",
        "EMAIL_HOST": parts.hostname,
        "EMAIL_PORT": port or _PORTS[parts.scheme],
        "EMAIL_HOST_USER": unquote(parts.username or ""),
        "EMAIL_HOST_PASSWORD": unquote(parts.password or ""),
        "EMAIL_USE_TLS": parts.scheme == "smtp+starttls",
        "EMAIL_USE_SSL": parts.scheme == "smtps",
    }
