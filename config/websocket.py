"""WebSockets as the workers speak them: uvicorn's protocol, with writes that never wait.

Whoever writes to thousands of sockets can't await each of them, and has to know which of
them have stopped reading. Applications find an extension in their scope for that.
"""

from __future__ import annotations

from typing import Any, cast

from uvicorn.protocols.websockets.websockets_sansio_impl import (
    WebSocketsSansIOProtocol,
)
from websockets.protocol import State

from wallets.sockets.outbox import WIRE

MAX_FRAME_BYTES = 2**20
"""Longest message from a client; a longer one closes its socket with 1009."""

PING_SECONDS = 30.0
"""Between two pings, and how long the answer to one may take: proxies cut off what is
silent for a minute, and clients that have vanished are found."""

LAST_WORDS_SECONDS = 1.0
"""How long a closing frame may wait behind what a client has not read."""


class WebSocketProtocol(WebSocketsSansIOProtocol):
    """One connection; itself the extension `wallets.sockets.outbox.Wire`."""

    async def run_asgi(self) -> None:
        """Run the application, with the extension in its scope."""
        scope = cast(dict[str, Any], self.scope)
        scope["extensions"] = {**scope["extensions"], WIRE: self}
        await super().run_asgi()

    @property
    def waiting_bytes(self) -> int:
        """What has been written and not yet taken by the kernel."""
        return 0 if self.disconnected else self.transport.get_write_buffer_size()

    def write_text(self, frame: bytes) -> None:
        """Write a message at once; nothing happens when the connection is closing."""
        if self.conn.state is State.OPEN and not self.transport.is_closing():
            self.conn.send_text(frame)
            self.transport.write(b"".join(self.conn.data_to_send()))

    def hang_up(self, code: int, reason: str) -> None:
        """Close the connection; a client that does not read can't put that off."""
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
