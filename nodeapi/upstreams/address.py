"""The address of an upstream, and the removal of its secrets from texts."""

from __future__ import annotations

import re
import ssl
from base64 import b64encode
from collections.abc import Mapping
from functools import cache
from typing import Any
from urllib.parse import unquote

import httpx

from nodeapi.upstreams.errors import UpstreamUnavailable

HIDDEN = "[…]"
"""Replaces a secret that an upstream has repeated in an error."""

USER_AGENT = "Portcullis"

MAX_DEPTH = 64
"""Maximum nesting of an error's data."""

_HEADER = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+: [\t\x20-\x7e\x80-\xff]*")
"""A name and a value. Source: RFC 9110, 5.1 and 5.5"""

_MIN_SECRET = 8
"""Minimum length of a part of a URL to be regarded as a secret. API keys are longer. Parts
such as `v3` or `mainnet` are not secret."""


class Address:
    """An upstream's URL and the headers of requests to it. The repr contains neither.

    url: http, https, ws or wss, without user info.
    headers: include an Authorization header with the URL's user info, unless another one
        is configured.
    """

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        """Parse a URL. Raises: UpstreamUnavailable if it or a header is invalid."""
        try:
            parsed = httpx.URL(url)
            self.headers = httpx.Headers(dict(headers))
            self.headers.setdefault("User-Agent", USER_AGENT)
            if parsed.userinfo and "Authorization" not in self.headers:
                self.headers["Authorization"] = _basic_auth(parsed)
            if not all(
                _HEADER.fullmatch(b": ".join(each)) for each in self.headers.raw
            ):
                raise ValueError("a header is invalid")
        except (httpx.InvalidURL, ValueError, TypeError):
            raise UpstreamUnavailable("the URL or a header is invalid") from None
        if parsed.scheme not in ("http", "https", "ws", "wss") or not parsed.host:
            raise UpstreamUnavailable("the URL has to be http, https, ws or wss")
        if parsed.port is not None and not 0 < parsed.port < 2**16:
            raise UpstreamUnavailable("the URL's port is not between 1 and 65535")
        self.url = parsed.copy_with(username=None, password=None, fragment=None)
        self._secrets = sorted(
            _secrets(url, parsed, headers.values()), key=len, reverse=True
        )

    @property
    def is_socket(self) -> bool:
        """Whether the URL is a WebSocket's."""
        return self.url.scheme in ("ws", "wss")

    def hide(self, value: Any, depth: int = MAX_DEPTH) -> Any:
        """Return a JSON value with the secrets in its strings replaced by `HIDDEN`.

        Object keys are included. Numbers are not searched.

        Raises: ValueError if lists and objects are nested deeper than `depth`.
        """
        if isinstance(value, str):
            for secret in self._secrets:
                value = value.replace(secret, HIDDEN)
            return value
        if not isinstance(value, list | dict):
            return value
        if not depth:
            raise ValueError("JSON is nested too deeply")
        if isinstance(value, list):
            return [self.hide(item, depth - 1) for item in value]
        return {
            self.hide(key): self.hide(item, depth - 1) for key, item in value.items()
        }


@cache
def tls() -> ssl.SSLContext:
    """Return the TLS settings for upstreams: certificates and host names are verified.

    SSL_CERT_FILE and SSL_CERT_DIR name the trusted authorities, as for other programs.
    Loading them takes 20 ms, so it is done once.
    """
    return httpx.create_ssl_context()


def _basic_auth(url: httpx.URL) -> str:
    credentials = f"{url.username}:{url.password}"
    return "Basic " + b64encode(credentials.encode()).decode()


def _secrets(url: str, parsed: httpx.URL, headers: Any) -> set[str]:
    """Return the texts to hide: the URL, and its parts that may be secrets."""
    path, query = parsed.path, parsed.query.decode()
    parts = {
        *(url, str(parsed), parsed.username, parsed.password),
        *(part for text in headers for part in (text, *text.split())),
        *path.split("/"),
        *parsed.raw_path.decode().split("/"),
        *(part for pair in query.split("&") for part in pair.split("=")),
    }
    parts |= {unquote(part) for part in parts}
    return {part for part in parts if len(part) >= _MIN_SECRET}
