"""Requests that uvicorn answers, on connections of `server.http`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from server.asgi import Receive, Scope, Send
from server.process import CONNECTION, process_of


class Connection(Protocol):
    """A connection that was handed over."""

    def end_page(self) -> None:
        """Continue with the next request after uvicorn has answered the last one."""


class HandedOver:
    """An ASGI middleware around the application that uvicorn runs.

    It reports the end of each request to its connection. The connection passes the next
    request on only afterwards, because uvicorn does not notice when the client of a
    pipelined request disconnects. While the process is draining, responses close their
    connections, so that the clients' next requests reach another process.
    """

    def __init__(self, application: Any) -> None:
        self._application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a scope."""
        process = process_of(scope)
        if scope["type"] != "http" or process is None:
            await self._application(scope, receive, send)
            return

        async def send_response(message: Mapping[str, Any]) -> None:
            if process.is_draining and message["type"] == "http.response.start":
                headers = [*message.get("headers", ()), (b"connection", b"close")]
                message = {**message, "headers": headers}
            await send(message)

        connection: Connection = scope["state"][CONNECTION]
        try:
            await self._application(scope, receive, send_response)
        finally:
            connection.end_page()
