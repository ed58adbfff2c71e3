"""Who gets which connection: `/v3` the node endpoint, everything else Django.

One process serves both. The endpoint is a bare ASGI application beside Django, not
inside it: passing through a Django view would cost twenty times what it does itself.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from channels.routing import ProtocolTypeRouter, URLRouter
from django.urls import re_path

Scope = dict[str, Any]
Message = Mapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]


class Endpoint(Protocol):
    """An ASGI application with connections of its own to open and close."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""

    async def start(self) -> None:
        """Open what answering needs."""

    async def stop(self) -> None:
        """Close it again."""


def is_node_path(path: str) -> bool:
    """Return whether a path is `/v3[/…]` or `/<slug>/v3[/…]`."""
    start = 0 if path.startswith("/v3") else path.find("/", 1)
    end = start + 3
    return path.startswith("/v3", start) and (len(path) == end or path[end] == "/")


async def refuse(scope: Scope, receive: Receive, send: Send) -> None:
    """Turn a WebSocket away before it is opened: the client sees a 403."""
    await receive()
    await send({"type": "websocket.close", "code": 1008})


class Gateway:
    """The application that the server calls, for each connection."""

    def __init__(self, endpoint: Endpoint, pages: Application) -> None:
        self._endpoint = endpoint
        # Channels routes to ASGI applications where Django's types expect views.
        sockets = URLRouter([re_path(r"", refuse)])  # type: ignore[arg-type]
        self._others = ProtocolTypeRouter({"http": pages, "websocket": sockets})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand a connection over to whoever its path belongs to."""
        if scope["type"] == "http" and is_node_path(scope["path"]):
            await self._endpoint(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._live(receive, send)
        else:
            await self._others(scope, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        """Open and close the endpoint with the server."""
        await receive()
        await self._endpoint.start()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self._endpoint.stop()
        await send({"type": "lifespan.shutdown.complete"})
