"""Django's part of a process: pages, the admin and the management API, in threads.

Each request has a thread and opens a connection to the database. A crowd of requests would
take all that PostgreSQL has, and nobody else, sockets and the node included, could open
one. So few are at work at a time, the others wait for their turn. A turn is over when the
response is made: who takes it slowly keeps neither turn nor connection.

Django itself takes bodies of any length and at any speed, and keeps them on the disk, before
it knows what they are for. Here they have bounds, and stay in memory.
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

AT_ONCE = 8
"""Requests at work in one process. They compute most of the time, for which there is one
processor: more of them would not be faster."""

MAX_WAITING = 256
"""Requests that wait for their turn; the next one is told to come again."""

MAX_BODY_BYTES = 2**20
"""Of a request: forms have some kilobytes, a keystore 16 KiB. nginx' own limit as well."""

BODY_SECONDS = 30.0
"""Until a request's body has come."""


class _BodyRefused(Exception):
    """Raised when no page is made for a body, be it for its length or its slowness."""

    def __init__(self, status: HTTPStatus) -> None:
        super().__init__(status.phrase)
        self.status = status


class Pages(ASGIHandler):
    """Django's ASGI application for as many requests at a time as are good for all."""

    def __init__(self) -> None:
        super().__init__()
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._waiting = 0

    async def handle(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request, with a status alone if its body is too much."""
        try:
            await super().handle(scope, receive, send)
        except _BodyRefused as refused:
            headers = [(b"content-type", b"text/plain")]
            if refused.status is HTTPStatus.REQUEST_TIMEOUT:
                headers.append((b"connection", b"close"))
            # Else what is still coming is read and dropped, so that the answer arrives.
            words = f"{refused}\n".encode()
            await send_answer(scope, send, refused.status.value, words, headers)

    async def read_body(self, receive: Any) -> BytesIO:
        """Return a request's body. Raises: RequestAborted, _BodyRefused."""
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
            # In the request's own thread; at the latest it would be closed with the client.
            await database_sync_to_async(connections.close_all)()
            self._turns.release()
