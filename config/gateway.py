"""Top-level routing: node requests, operators' paths, WebSockets, pages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

from channels.routing import ProtocolTypeRouter

from nodeapi.endpoint.access import is_node_path
from server.asgi import AsgiNode, Receive, Scope, Send
from server.bounds import Limits
from server.options import ServerOptions
from server.request import Handler

Application = Callable[[Scope, Receive, Send], Awaitable[None]]


class Part(Protocol):
    """A part of the service with its own connections."""

    async def start(self) -> None:
        """Open the connections."""

    async def stop(self) -> None:
        """Close the connections."""


class LazyPart:
    """The base of parts that open their connections when they are used first."""

    async def start(self) -> None:
        """Return at once."""


async def refuse(scope: Scope, receive: Receive, send: Send) -> None:
    """Refuse a WebSocket handshake: the client sees a 403."""
    await receive()
    await send({"type": "websocket.close", "code": 1008})


class Gateway:
    """The ASGI application that the server loads.

    The server passes node requests to `node` directly (see `server_options`). This
    application receives those on connections that were handed over to uvicorn.

    node: answers node requests.
    pages: answers other HTTP requests.
    sockets: answers WebSockets.
    lean: answer paths that need no Django, by path.
    parts: started in this order with the server, and stopped in the opposite order.
    limits, refusals, trusted_proxies: see `server.options.ServerOptions`.
    """

    def __init__(
        self,
        node: Handler,
        pages: Application,
        *,
        sockets: Application = refuse,
        lean: Mapping[str, Application] | None = None,
        parts: Sequence[Part] = (),
        limits: Limits | None = None,
        refusals: Mapping[str, bytes] | None = None,
        trusted_proxies: str = "127.0.0.1",
    ) -> None:
        self.server_options = ServerOptions(
            handler=node,
            is_node_path=is_node_path,
            refusals=refusals or {},
            limits=limits or Limits(),
            trusted_proxies=trusted_proxies,
        )
        self._node = AsgiNode(node)
        self._parts = parts
        self._others = ProtocolTypeRouter({"http": pages, "websocket": sockets})
        self._lean = lean or {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a scope."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "websocket":
            await self._others(scope, receive, send)
        elif is_node_path(scope["path"]):
            await self._node(scope, receive, send)
        else:
            serve = self._lean.get(scope["path"], self._others)
            await serve(scope, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        """Start and stop the parts with the server."""
        await receive()
        for part in self._parts:
            await part.start()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        for part in reversed(self._parts):
            await part.stop()
        await send({"type": "lifespan.shutdown.complete"})
