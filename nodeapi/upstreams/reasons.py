"""Texts for failed connections, without the error's own text.

That text may contain the URL of an upstream, and with it a secret.
"""

from __future__ import annotations

import socket
import ssl

import httptools
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidURI

_REASONS: tuple[tuple[type[Exception], str], ...] = (
    (socket.gaierror, "the host name was not found"),
    (ssl.SSLError, "no TLS connection"),
    (ConnectionRefusedError, "connection refused"),
    (TimeoutError, "timeout"),
    (httptools.HttpParserError, "the response is not HTTP"),
    (ConnectionClosed, "the connection was closed"),
    (ConnectionError, "the connection was closed"),
    (InvalidURI, "the URL is invalid"),
    (UnicodeError, "the URL is invalid"),
    (InvalidHandshake, "the WebSocket handshake failed"),
    (OSError, "no connection"),
)
"""Types of errors, special ones first."""


def reason_of(error: BaseException) -> str:
    """Return the reason of a failed connection. Otherwise, return the error's type.

    The innermost cause is the most precise one: httpx raises the same error for an unknown
    host name and for a refused connection.
    """
    return _known(error) or type(error).__name__


def _known(error: BaseException) -> str:
    """Return the reason that the innermost known cause has, otherwise ""."""
    cause = error.__cause__ or error.__context__
    if cause is not None and (found := _known(cause)):
        return found
    return next((text for kind, text in _REASONS if isinstance(error, kind)), "")
