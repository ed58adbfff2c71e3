"""Who gets which connection: `/v3` the node endpoint, `/ws` sockets, the rest pages.

One process serves them all. The endpoint is a bare ASGI application beside Django, not
inside it: passing through a Django view would cost twenty times what it does itself.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

from asgiref.sync import markcoroutinefunction
from channels.routing import ProtocolTypeRouter, URLRouter
from django.urls import re_path

Scope = dict[str, Any]
Message = Mapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
AnswerOne = Callable[[Any], Awaitable[None]]
"""Answers an exchange; returns what an application does."""

Recognise = Callable[[Scope], AnswerOne | None]
"""Returns what answers requests with the head that a scope tells of; None for a head
whose requests are to be told of in a scope each time."""

Application = Callable[[Scope, Receive, Send], Awaitable[None]]


class Part(Protocol):
    """Something with connections of its own to open and close."""

    async def start(self) -> None:
        """Open what answering needs."""

    async def stop(self) -> None:
        """Close it again."""


class Endpoint(Part, Protocol):
    """An ASGI application that is such a part."""

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Answer one request."""

    def recognise(self, scope: Scope) -> AnswerOne | None:
        """Return what answers requests with the head that a scope tells of, if anything."""


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
    """The application that the server calls, for each connection.

    sockets: what serves WebSockets, by path without the first slash.
    lean: what answers paths that need no Django, by path.
    around: wraps what answers customers and people.
    parts: what is opened after the endpoint and closed before it, in this order.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        pages: Application,
        *,
        sockets: Mapping[str, Application] | None = None,
        lean: Mapping[str, Application] | None = None,
        around: Callable[[Application], Application] | None = None,
        parts: Sequence[Part] = (),
    ) -> None:
        self._answer: Application = endpoint
        if around is not None:
            self._answer, pages = around(endpoint), around(pages)
        self._recognise: Recognise | None = getattr(self._answer, "recognise", None)
        self._parts = [endpoint, *parts]
        # Channels routes to ASGI applications where Django's types expect views.
        routes: list[Any] = [
            re_path(rf"^{re.escape(path)}$", serve)  # type: ignore[arg-type]
            for path, serve in (sockets or {}).items()
        ]
        router = URLRouter([*routes, re_path(r"", refuse)])  # type: ignore[arg-type]
        self._others = ProtocolTypeRouter({"http": pages, "websocket": router})
        self._lean = lean or {}

    @markcoroutinefunction  # or uvicorn takes it for what ASGI 2 was
    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Hand a connection over to whoever its path belongs to."""
        if scope["type"] == "http" and is_node_path(scope["path"]):
            return self._answer(scope, receive, send)
        if scope["type"] == "lifespan":
            return self._live(receive, send)
        serve = self._lean.get(scope["path"]) if scope["type"] == "http" else None
        return (serve or self._others)(scope, receive, send)

    def recognise(self, scope: Scope) -> AnswerOne | None:
        """Return what answers requests with the head that a scope tells of, if anything."""
        if self._recognise is None or not is_node_path(scope["path"]):
            return None
        return self._recognise(scope)

    async def _live(self, receive: Receive, send: Send) -> None:
        """Open and close the parts with the server."""
        await receive()
        for part in self._parts:
            await part.start()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        for part in reversed(self._parts):
            await part.stop()
        await send({"type": "lifespan.shutdown.complete"})
