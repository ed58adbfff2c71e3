"""Django's part of a process: pages, the admin and the management API, in threads.

Each request has a thread and opens a connection to the database. A crowd of requests would
take all that PostgreSQL has, and nobody else, sockets and the node included, could open
one. So few are at work at a time, the others wait for their turn. A turn is over when the
response is made: who takes it slowly keeps neither turn nor connection.
"""

from __future__ import annotations

import asyncio
from typing import Any

from channels.db import database_sync_to_async
from django.core.handlers.asgi import ASGIHandler
from django.db import connections
from django.http import HttpRequest, HttpResponse

AT_ONCE = 8
"""Requests at work in one process. They compute most of the time, for which there is one
processor: more of them would not be faster."""

MAX_WAITING = 256
"""Requests that wait for their turn; the next one is told to come again."""


class Pages(ASGIHandler):
    """Django's ASGI application for as many requests at a time as are good for all."""

    def __init__(self) -> None:
        super().__init__()
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._waiting = 0

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
