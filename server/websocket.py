"""uvicorn's WebSocket protocol, with writes that do not wait.

An application that writes to thousands of sockets can't await each of them, and has to
detect those that have stopped reading. It finds an extension in its ASGI scope for
this.
"""

from __future__ import annotations

from typing import Any, cast

from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import (
    WebSocketsSansIOProtocol,
)
from websockets.protocol import State

WIRE = "portcullis.wire"
"""Extension in a WebSocket's ASGI scope: the connection, for writes that do not wait."""

MAX_FRAME_BYTES = 2**20
"""Longest message from a client; a longer one closes its socket with 1009."""

PING_SECONDS = 30.0
"""Interval of pings, and timeout of their answers. Proxies close connections that are
silent for a minute. Pings also detect clients that have vanished."""

LAST_WORDS_SECONDS = 1.0
"""Longest delay of a close frame behind data that the client has not read."""


class WebSocketProtocol(WebSocketsSansIOProtocol):
    """One connection. It also is the extension `nodeapi.frames.wire.ServerWire`."""

    async def run_asgi(self) -> None:
        """Run the application, with the extension in its scope."""
        scope = cast(dict[str, Any], self.scope)
        scope["extensions"] = {**scope["extensions"], WIRE: self}
        await super().run_asgi()

    async def send(self, message: Any) -> None:
        """Send an ASGI message. Rejecting a handshake with a response completes it.

        uvicorn would log an error for such a response.

        Raises: ClientDisconnected for a frame on a connection that is being closed.
            After a ping timeout, uvicorn would raise RuntimeError.
        """
        is_frame = message["type"] in ("websocket.send", "websocket.close")
        if is_frame and self.handshake_complete and self.transport.is_closing():
            raise ClientDisconnected
        await super().send(message)
        if self.close_sent and self.initial_response is not None:
            self.handshake_complete = True

    @property
    def waiting_bytes(self) -> int:
        """Number of written bytes that the kernel has not taken yet."""
        return 0 if self.disconnected else self.transport.get_write_buffer_size()

    def write_text(self, frame: bytes) -> None:
        """Write a message without waiting. No effect if the connection is closing."""
        if self.conn.state is State.OPEN and not self.transport.is_closing():
            self.conn.send_text(frame)
            self.transport.write(b"".join(self.conn.data_to_send()))

    def hang_up(self, code: int, reason: str) -> None:
        """Close the connection, without waiting for a client that does not read."""
        if self.conn.state is not State.OPEN or self.transport.is_closing():
            return
        patience = LAST_WORDS_SECONDS if self.waiting_bytes else self.close_timeout
        closed = {"type": "websocket.disconnect", "code": code, "reason": reason}
        self.queue.put_nowait(cast(Any, closed))
        self.conn.send_close(code, reason)
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.close_sent = True
        self.stop_keepalive()
        if self.read_paused:  # the client's own closing frame is to be read
            self.read_paused = False
            self.transport.resume_reading()
        self.close_timer = self.loop.call_later(patience, self.transport.abort)
