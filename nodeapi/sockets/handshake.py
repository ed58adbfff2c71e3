"""Parts of WebSocket handshakes, and their rejection with HTTP responses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nodeapi.frames.close_codes import REJECTED
from server.asgi import Scope, Send

RESPONSE = "websocket.http.response"
"""The ASGI extension for rejecting a handshake with a response.

Source: https://asgi.readthedocs.io/en/latest/extensions.html
"""

PLAIN_TEXT = (b"content-type", b"text/plain; charset=utf-8")


class Rejected(Exception):
    """Raised to reject a handshake.

    status, headers: the HTTP response's. why: the response's body.
    """

    def __init__(
        self,
        status: int,
        why: str,
        headers: Sequence[tuple[bytes, bytes]] = (PLAIN_TEXT,),
    ) -> None:
        super().__init__(why)
        self.status = status
        self.why = why
        self.headers = headers


async def reject(scope: Scope, send: Send, rejected: Rejected) -> None:
    """Reject a handshake.

    A server without the extension RESPONSE always responds with status 403.
    """
    if RESPONSE not in (scope.get("extensions") or {}):
        # A reason has at most 123 bytes.
        reason = rejected.why if len(rejected.why) < 100 else ""
        await send({"type": "websocket.close", "code": REJECTED, "reason": reason})
        return
    headers = list(rejected.headers)
    given = {name for name, _ in headers}
    if rejected.status == 401 and b"www-authenticate" not in given:
        headers.append((b"www-authenticate", b"Bearer"))
    if rejected.status in (429, 503) and b"retry-after" not in given:
        headers.append((b"retry-after", b"1"))
    start = {"type": f"{RESPONSE}.start", "status": rejected.status}
    await send({**start, "headers": headers})
    await send({"type": f"{RESPONSE}.body", "body": rejected.why.encode()})


def headers_of(scope: Scope) -> Mapping[bytes, bytes]:
    """Return the headers by lower-case name. Of repeated headers, the last one counts."""
    return {name.lower(): value for name, value in scope["headers"]}


def remote_address(scope: Scope) -> str | None:
    """Return the client's IP address, or None if the server does not know it."""
    client: Any = scope.get("client")
    return client[0] if client else None
