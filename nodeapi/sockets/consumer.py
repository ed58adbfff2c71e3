"""The base of all consumers: Channels consumers whose frames are written by many senders."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from channels.consumer import get_handler_name
from channels.exceptions import StopConsumer
from channels.generic.websocket import AsyncWebsocketConsumer

from nodeapi.frames.wire import SendQueue, Wire, server_wire
from nodeapi.sockets.handshake import Rejected, reject
from server.asgi import Receive, Scope, Send

NO_LAYER = "none"
"""The alias of no channel layer: consumers with it open no channel of their own."""


class SocketConsumer(AsyncWebsocketConsumer):  # type: ignore[misc]  # Channels has no types
    """A consumer whose frames are written without waiting, by many senders.

    Subclasses write them to `wire`. They may raise Rejected in `connect`.
    """

    channel_layer_alias = NO_LAYER

    wire: Wire

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection.

        A middleware that has replaced `send` gets every frame: these don't bypass it.
        """
        wire = server_wire(scope)
        if wire is not None and send == wire.send:
            self.wire = wire
            await self._serve(scope, receive, send)
            return
        queue = self.wire = SendQueue(receive, send, wire)
        try:
            await self._serve(scope, queue.receive, queue.send)
        finally:
            await queue.stop()

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self.leave()

    async def dispatch(self, message: Mapping[str, Any]) -> None:
        """Call the handler of an ASGI message.

        Channels would first close old database connections, in a thread that all pages
        and sockets share. Sockets that use the database close them themselves, in threads
        of their own.
        """
        await getattr(self, get_handler_name(message))(message)

    async def websocket_connect(self, message: Mapping[str, Any]) -> None:
        """Accept or reject the handshake."""
        try:
            await super().websocket_connect(message)
        except Rejected as rejected:
            await reject(self.scope, self.base_send, rejected)
            raise StopConsumer from rejected

    async def websocket_disconnect(self, message: Mapping[str, Any]) -> None:
        """End the consumer. `leave` is called in any case."""
        raise StopConsumer

    async def leave(self) -> None:
        """Release what `connect` has taken. Called once, even after a rejection."""
