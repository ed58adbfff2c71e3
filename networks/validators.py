"""Validation of upstreams' URLs and headers. No error contains them, as they are secret.

Source: https://www.rfc-editor.org/rfc/rfc9110.html#section-5
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

from django.core.exceptions import ValidationError

URL_SCHEMES = ("http", "https", "ws", "wss")

MAX_HEADERS = 20
MAX_HEADER_NAME = 100
"""Maximum length of a header's name."""
MAX_HEADER_VALUE = 4096
"""Maximum length of a header's value. It suffices for a JSON web token."""

OWN_HEADERS = frozenset(
    {
        *("accept-encoding", "connection", "content-length", "content-type", "host"),
        *("keep-alive", "te", "trailer", "transfer-encoding", "upgrade"),
    }
)
"""Headers that the client sets itself, in lower case."""

_VISIBLE = re.compile(r"[!-~]+")
_HOST = re.compile(r"[A-Za-z0-9_.:-]+")
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_HEADER_VALUE = re.compile(r"[!-~]([ \t!-~]*[!-~])?")


def validate_upstream_url(value: str) -> None:
    """Reject everything but `http`, `https`, `ws` and `wss` URLs with a host.

    Django's own validator rejects hosts without a dot, such as those of containers.

    Raises: ValidationError. The message contains no URL.
    """
    try:
        parts = urlsplit(value)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise _bad_url("its host or port is malformed") from None
    if not _VISIBLE.fullmatch(value):
        raise _bad_url("it has a space or a character that is not ASCII")
    if parts.scheme not in URL_SCHEMES or not value.startswith(f"{parts.scheme}://"):
        raise _bad_url("it has to begin with http://, https://, ws:// or wss://")
    if not _HOST.fullmatch(host) or port == 0:
        raise _bad_url("its host or port is malformed" if host else "it has no host")
    if parts.fragment:
        raise _bad_url("it has a fragment (#…)")


def parse_headers(lines: Iterable[str]) -> dict[str, str]:
    """Parse lines such as `Authorization: Bearer …`, without the empty ones.

    Raises: ValidationError for a line without a colon, and for a repeated name. Neither
        message contains a value.
    """
    headers: dict[str, str] = {}
    for number, line in enumerate(filter(str.strip, lines), start=1):
        name, colon, value = (part.strip() for part in line.partition(":"))
        if not colon:
            raise ValidationError(
                f"Header {number} has no colon. Write it as NAME: VALUE."
            )
        if name in headers:
            raise ValidationError(f"The header {name} occurs twice.")
        headers[name] = value
    return headers


def validate_headers(value: Any) -> None:
    """Reject everything but a small object of HTTP header names and values.

    Raises: ValidationError. The message contains no header's value.
    """
    if not isinstance(value, Mapping):
        raise ValidationError("The headers must be an object of names and values.")
    if len(value) > MAX_HEADERS:
        raise ValidationError(f"An upstream has at most {MAX_HEADERS} headers.")
    seen = set()
    for name, content in value.items():
        if not _HEADER_NAME.fullmatch(name) or len(name) > MAX_HEADER_NAME:
            raise ValidationError(
                "A header has an invalid name. Use letters, digits and hyphens, at most "
                f"{MAX_HEADER_NAME} characters."
            )
        if name.lower() in OWN_HEADERS:
            raise ValidationError(f"The header {name} is set automatically. Remove it.")
        if name.lower() in seen:
            raise ValidationError(f"The header {name} occurs twice.")
        seen.add(name.lower())
        if not isinstance(content, str) or not _HEADER_VALUE.fullmatch(content):
            raise ValidationError(
                f"The value of the header {name} has to be visible ASCII text."
            )
        if len(content) > MAX_HEADER_VALUE:
            raise ValidationError(
                f"The value of the header {name} is longer than "
                f"{MAX_HEADER_VALUE} characters."
            )


def _bad_url(reason: str) -> ValidationError:
    return ValidationError(f"The URL of an upstream is invalid: {reason}.")
