"""Responses to operators' programs (health, metrics) that bypass Django."""

from __future__ import annotations

from server.asgi import Scope, Send
from server.request import Headers

_JSON = ((b"content-type", b"application/json"),)
_ALWAYS = ((b"cache-control", b"no-store"),)


def is_reading(scope: Scope) -> bool:
    """Return whether a request's method is GET or HEAD."""
    return scope["method"] in ("GET", "HEAD")


async def send_answer(
    scope: Scope,
    send: Send,
    status: int,
    body: bytes,
    headers: Headers = _JSON,
) -> None:
    """Send a response that must not be cached."""
    length = (b"content-length", b"%d" % len(body))
    start = {"type": "http.response.start", "status": status}
    await send({**start, "headers": [*headers, *_ALWAYS, length]})
    is_head = scope["method"] == "HEAD"
    await send({"type": "http.response.body", "body": b"" if is_head else body})


async def refuse_method(scope: Scope, send: Send) -> None:
    """Respond with 405 to a request that is neither GET nor HEAD."""
    allow = [(b"allow", b"GET, HEAD"), *_JSON]
    await send_answer(scope, send, 405, b'{"status":"method not allowed"}', allow)
