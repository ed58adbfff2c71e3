"""Writing of frames, by the server's own connection or by ASGI's `send`."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from typing import Any, Protocol

from server.asgi import Receive, Scope, Send

WIRE = "portcullis.wire"
"""Key of the ASGI scope extension that holds a `ServerWire`."""

LAST_WORDS_SECONDS = 1.0
"""Longest delay of a close frame behind frames that the client has not read."""


class Wire(Protocol):
    """A connection on which frames are written without waiting."""

    @property
    def waiting_bytes(self) -> int:
        """Bytes that were written and not yet taken by the kernel."""

    def write_text(self, frame: bytes) -> None:
        """Write a text frame; does nothing when the connection is closing."""

    def hang_up(self, code: int, reason: str) -> None:
        """Write a close frame; abort the connection if the client does not respond."""


class ServerWire(Wire, Protocol):
    """A `Wire` that the server provides."""

    async def send(self, message: Mapping[str, Any]) -> None:
        """Send an ASGI message; the server passes this method to the application."""


def server_wire(scope: Scope) -> ServerWire | None:
    """Return the wire in a connection's scope; None from servers without it."""
    wire: ServerWire | None = (scope.get("extensions") or {}).get(WIRE)
    return wire


class SendQueue:
    """A `Wire` on ASGI's `send`, for every server and behind every middleware.

    Frames are queued, and a task sends them in order. The task ends when the queue is
    empty. Frames that are written before the handshake is accepted are sent after it.

    Pass the methods `receive` and `send` to the consumer in place of the server's.
    wire: the server's, if there is one. It only closes the connections of clients that
    do not read: ASGI has no message for that.
    """

    def __init__(
        self, receive: Receive, send: Send, wire: ServerWire | None = None
    ) -> None:
        self._receive = receive
        self._send = send
        self._wire = wire
        self._frames: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._close: Mapping[str, Any] | None = None
        self._is_accepted = False
        self._sender: asyncio.Task[None] | None = None
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[Mapping[str, Any]] = self._loop.create_future()
        self._deadline: asyncio.TimerHandle | None = None

    @property
    def waiting_bytes(self) -> int:
        """Bytes of the frames that `send` has not taken yet."""
        return self._waiting_bytes

    def write_text(self, frame: bytes) -> None:
        """Queue a text frame; does nothing when the connection is closing."""
        if self._close is None and not self._ended.done():
            self._frames.append(frame)
            self._waiting_bytes += len(frame)
            self._start()

    def hang_up(self, code: int, reason: str) -> None:
        """Close the connection after the queued frames, at most a second later."""
        if self._close is None:
            self._close = {"type": "websocket.close", "code": code, "reason": reason}
            self._deadline = self._loop.call_later(
                LAST_WORDS_SECONDS, self._give_up, code, reason
            )
            self._start()

    async def send(self, message: Mapping[str, Any]) -> None:
        """Send a message of the handshake. Once it is accepted, send the queued frames."""
        await self._send(message)
        if message["type"] == "websocket.accept":
            self._is_accepted = True
            self._start()

    async def receive(self) -> Mapping[str, Any]:
        """Return the client's next message, or a disconnect after `hang_up`.

        Raises: an exception that `send` has raised.
        """
        incoming = asyncio.ensure_future(self._receive())
        try:
            await asyncio.wait(
                [incoming, self._ended], return_when=asyncio.FIRST_COMPLETED
            )
            return incoming.result() if incoming.done() else self._ended.result()
        finally:
            incoming.cancel()

    async def stop(self) -> None:
        """Drop the queued frames. Call it when the connection is closed."""
        if self._deadline is not None:
            self._deadline.cancel()
        if self._sender is not None:
            self._sender.cancel()
            await asyncio.gather(self._sender, return_exceptions=True)
        self._ended.cancel()

    def _start(self) -> None:
        is_ready = self._is_accepted and not self._ended.done()
        if is_ready and self._sender is None:
            self._sender = self._loop.create_task(self._run())

    async def _run(self) -> None:
        try:
            await self._send_queued()
        except OSError:  # the client has disconnected
            self._end({"type": "websocket.disconnect", "code": 1006})
        except Exception as error:
            if not self._ended.done():
                self._ended.set_exception(error)
                self._ended.exception()  # marks it as retrieved
        finally:
            self._sender = None

    async def _send_queued(self) -> None:
        while self._frames:
            frame = self._frames.popleft()
            await self._send({"type": "websocket.send", "text": frame.decode()})
            self._waiting_bytes -= len(frame)
        if self._close is not None:
            await self._send(self._close)
            self._end({**self._close, "type": "websocket.disconnect"})

    def _give_up(self, code: int, reason: str) -> None:
        if self._wire is not None:
            self._wire.hang_up(code, reason)
        self._end({"type": "websocket.disconnect", "code": code, "reason": reason})

    def _end(self, message: Mapping[str, Any]) -> None:
        if not self._ended.done():
            self._ended.set_result(message)
