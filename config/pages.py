"""Django's ASGI application: pages, the admin and the management API, in threads.

Each request uses a thread and a database connection. Without a limit, many requests could
use all connections of PostgreSQL, and WebSockets and the node could not open one.
Therefore only a few requests run at a time, and others wait. A request releases its turn
and its connection when its response is complete, before the client has read it.

Django accepts bodies of any size at any speed, and writes them to disk before it routes
the request. This application limits bodies and keeps them in memory.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from io import BytesIO
from typing import Any

from channels.db import database_sync_to_async
from django.core.exceptions import RequestAborted
from django.core.handlers.asgi import ASGIHandler
from django.db import connections
from django.http import HttpRequest, HttpResponse

from config.lean import send_answer
from keys.api import problems

AT_ONCE = 8
"""Requests that run at a time in one process. They mostly compute, on one processor, so
that more of them would not be faster."""

MAX_WAITING = 256
"""Requests that wait for their turn; further ones get 503 with Retry-After."""

MAX_BODY_BYTES = 2**20
"""Maximum size of a body. Forms have some kilobytes, keystores 16 KiB; nginx's default."""

BODY_SECONDS = 30.0
"""Time in which the whole body of a request has to arrive."""


_REASONS = {HTTPStatus.UNSUPPORTED_MEDIA_TYPE: "send the body without Content-Encoding"}

_API = "/api/"
"""Paths whose errors are problem details."""


class _BodyRefused(Exception):
    """Raised when a body is too long, arrives too slowly or is compressed."""

    def __init__(self, status: HTTPStatus) -> None:
        super().__init__(status.phrase)
        self.status = status


class Pages(ASGIHandler):
    """Django's ASGI application with limits on concurrent requests and on bodies."""

    def __init__(self) -> None:
        super().__init__()
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._waiting = 0

    async def handle(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request. If its body exceeds a limit, the response is a plain error."""
        try:
            if _is_compressed(scope):
                raise _BodyRefused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
            await super().handle(_with_short_length(scope), receive, send)
        except _BodyRefused as refused:
            headers = []
            if refused.status is HTTPStatus.UNSUPPORTED_MEDIA_TYPE:
                headers.append((b"accept-encoding", b"identity"))
            if refused.status is HTTPStatus.REQUEST_TIMEOUT:
                headers.append((b"connection", b"close"))
            # Otherwise the server discards the rest of the body, so that the answer arrives.
            media_type, answer = _refusal(scope["path"], refused.status)
            headers.append((b"content-type", media_type))
            await send_answer(scope, send, refused.status.value, answer, headers)

    async def read_body(self, receive: Any) -> BytesIO:
        """Return the body of a request. Raises: RequestAborted, _BodyRefused."""
        body = BytesIO()
        message: dict[str, Any] = {"more_body": True}
        try:
            async with asyncio.timeout(BODY_SECONDS):
                while message.get("more_body"):
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise RequestAborted
                    body.write(message.get("body", b""))
                    if body.tell() > MAX_BODY_BYTES:
                        raise _BodyRefused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        except TimeoutError as error:
            raise _BodyRefused(HTTPStatus.REQUEST_TIMEOUT) from error
        body.seek(0)
        return body

    async def get_response_async(self, request: HttpRequest) -> Any:
        """Return the response to a request, whose connections are closed by then."""
        if self._waiting >= MAX_WAITING:
            return HttpResponse(
                "Try again soon.", status=503, headers={"Retry-After": "1"}
            )
        self._waiting += 1
        try:
            await self._turns.acquire()
        finally:
            self._waiting -= 1
        try:
            return await super().get_response_async(request)
        finally:
            try:
                # In the request's own thread; at the latest it is closed with the client.
                await database_sync_to_async(connections.close_all)()
            except RuntimeError:
                pass  # the client has disconnected, and the thread and its connections are closed
            finally:
                self._turns.release()


def _refusal(path: str, status: HTTPStatus) -> tuple[bytes, bytes]:
    """Return the media type and the body of the response to a refused request."""
    reason = _REASONS.get(status, "")
    if path.startswith(_API):
        detail = f"The body must not be compressed: {reason}." if reason else ""
        return problems.MEDIA_TYPE.encode(), problems.refusal(status, detail)
    return (
        b"text/plain",
        f"{': '.join(filter(None, (status.phrase, reason)))}\n".encode(),
    )


def _is_compressed(scope: Any) -> bool:
    """Return whether a request has a Content-Encoding, which Django would ignore."""
    return any(
        name == b"content-encoding" and value.lower() != b"identity"
        for name, value in scope.get("headers", ())
    )


def _with_short_length(scope: Any) -> Any:
    """Return an HTTP scope whose Content-Length has no leading zeros.

    RFC 9110 (section 8.6) allows any number of them, and the server has checked that the
    value fits into 64 bits. Django calls `int` on the text, which raises ValueError
    beyond 4300 digits.
    """
    headers = scope.get("headers", ())
    if any(name == b"content-length" and value[:1] == b"0" for name, value in headers):
        headers = [
            (name, value.lstrip(b"0") or b"0" if name == b"content-length" else value)
            for name, value in headers
        ]
        return {**scope, "headers": headers}
    return scope
