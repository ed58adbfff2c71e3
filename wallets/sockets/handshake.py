"""Reads the handshakes of dapps and of users' pages."""

from __future__ import annotations

import io
import re

from django.conf import settings
from django.core.exceptions import DisallowedHost
from django.core.handlers.asgi import ASGIRequest

from nodeapi.sockets.handshake import Rejected, headers_of
from server.asgi import Scope
from wallets.services.presence import Refusal

NOT_LOGGED_IN = "only for pages of this site, and after a log-in"

_TOKEN_PREFIX = "token."
"""Prefix of the token among the offered subprotocols: pages can set no other header."""

_TOKEN = re.compile(r"[-_A-Za-z0-9]{43}")

_SESSION_KEY = re.compile(r"[0-9a-z]{8,40}")


def read_token(scope: Scope) -> str:
    """Return the connection token of a dapp's handshake.

    Raises: Rejected without a token, or for a malformed one.
    """
    offered = [
        name.removeprefix(_TOKEN_PREFIX)
        for name in scope.get("subprotocols") or ()
        if name.startswith(_TOKEN_PREFIX)
    ]
    scheme, _, value = headers_of(scope).get(b"authorization", b"").partition(b" ")
    if scheme.lower() == b"bearer":
        offered.append(value.strip().decode("latin-1"))
    if not offered:
        raise Rejected(401, "a connection token is required")
    # Two tokens are malformed too: they could belong to different dapps.
    if len(offered) > 1 or _TOKEN.fullmatch(offered[0]) is None:
        raise Rejected(403, Refusal.BAD_TOKEN.value)
    token: str = offered[0]
    return token


def read_origin(scope: Scope) -> str | None:
    """Return the Origin header; None without one."""
    origin = headers_of(scope).get(b"origin")
    return None if origin is None else origin.decode("latin-1")


def session_key(scope: Scope) -> str:
    """Return the login session's key from the cookie of a page of this site.

    Raises: Rejected without the cookie, without an Origin header, or for another site's
    origin.
    """
    # Django parses it as a page's request: allowed hosts, proxy headers, cookies.
    scheme = "https" if scope.get("scheme") == "wss" else "http"
    page = {**scope, "type": "http", "method": "GET", "scheme": scheme}
    request = ASGIRequest(page, io.BytesIO())
    try:
        own = f"{scheme}://{request.get_host()}"
    except DisallowedHost as error:
        raise Rejected(403, NOT_LOGGED_IN) from error
    if request.headers.get("Origin") not in [own, *settings.CSRF_TRUSTED_ORIGINS]:
        raise Rejected(403, NOT_LOGGED_IN)
    key = request.COOKIES.get(settings.SESSION_COOKIE_NAME, "")
    if not _SESSION_KEY.fullmatch(key):
        raise Rejected(403, NOT_LOGGED_IN)
    return key
