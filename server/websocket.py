"""uvicorn's WebSocket protocol, with writes that do not wait and reads in slices.

An application that writes to thousands of sockets can't await each of them, and has to
detect those that have stopped reading. It finds an extension in its ASGI scope for
this.

A frame costs microseconds, even an empty one. No callback of the event loop parses more
than a slice of the frames that have arrived, connections with many frames take turns
(`server.turns`), and nothing is read before the handshake is decided.
"""

from __future__ import annotations

from typing import Any, cast

from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import (
    WebSocketsSansIOProtocol,
)
from websockets.frames import Opcode
from websockets.protocol import State

from server.turns import TURNS, Turns

WIRE = "portcullis.wire"
"""Extension in a WebSocket's ASGI scope: the connection, for writes that do not wait."""

MAX_FRAME_BYTES = 2**20
"""Longest message from a client; a longer one closes its socket with 1009."""

MAX_FRAGMENTS = 1024
"""Largest number of frames of a message. Clients that fragment use frames of more than
MAX_FRAME_BYTES / 1024 bytes. Empty ones do not count for the size of a message."""

MAX_CONTROL_FRAMES = 200
"""Largest number of pings and pongs in CONTROL_SECONDS. A client that pings each second
may send them all at once after its network was down for minutes."""

CONTROL_SECONDS = 10.0

SLICE_FRAMES = 64
"""Largest number of frames that are parsed at once. They take half a millisecond."""

_CHEAP_FRAMES = 8
"""Number of frames after which a connection goes on at once."""

PING_SECONDS = 30.0
"""Interval of pings, and timeout of their answers. Proxies close connections that are
silent for a minute. Pings also detect clients that have vanished."""

LAST_WORDS_SECONDS = 1.0
"""Longest delay of a close frame behind data that the client has not read."""


class TooManyFrames(Exception):
    """Raised when a client sends more frames than it needs for its messages."""


class FrameReader:
    """Finds where frames end, and counts them, without decoding them.

    Source: https://www.rfc-editor.org/rfc/rfc6455#section-5.2
    """

    def __init__(self) -> None:
        self._left = 0
        """Bytes of the current frame that have not arrived."""
        self._fragments = 0
        """Frames of the current message."""
        self.frames = 0
        """Frames that the last slice begins."""
        self.controls = 0
        """The number of those frames that are control frames."""

    def slice(self, data: bytes) -> int:
        """Return the number of bytes of the next slice: at most SLICE_FRAMES frames.

        data: the bytes that were received since the last slice. An incomplete frame
            header at its end is left to the next slice.
        Raises: TooManyFrames.
        """
        at = min(self._left, len(data))
        self._left -= at
        self.frames = self.controls = 0
        while self.frames < SLICE_FRAMES and len(data) - at >= 2:
            first, size = data[at], data[at + 1] & 127
            header = 2 if size < 126 else 4 if size == 126 else 10
            if data[at + 1] & 128:
                header += 4  # the mask
            if len(data) - at < header:
                break
            if size > 125:
                size = int.from_bytes(data[at + 2 : at + (4 if size == 126 else 10)])
            self._count(first)
            at += header + size
            if at > len(data):
                self._left = at - len(data)
                return len(data)
        return at

    def _count(self, first: int) -> None:
        """Count a frame. first: its first byte."""
        self.frames += 1
        if first & 15 >= Opcode.CLOSE:
            self.controls += 1
            return
        self._fragments += 1
        if self._fragments > MAX_FRAGMENTS:
            raise TooManyFrames("too many fragments")
        if first & 128:
            self._fragments = 0


class WebSocketProtocol(WebSocketsSansIOProtocol):
    """One connection. It also is the extension `nodeapi.frames.wire.ServerWire`.

    The state of the application contains the process's `Turns`.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._turns: Turns = self.app_state[TURNS]
        self._reader = FrameReader()
        self._input = b""
        """Frames that have not been parsed."""
        self._is_waiting = False
        """Whether the connection waits for its turn, and does not read until then."""
        self._controls = 0
        """Pings and pongs since `_controls_since`, a time of the event loop."""
        self._controls_since = 0.0

    def data_received(self, data: bytes) -> None:
        """Parse the request of the handshake, or the first slice of the frames.

        The request comes from uvicorn's HTTP protocol, complete and without other bytes.
        """
        if not self.handshake_initiated:
            super().data_received(data)
            if not self.transport.is_closing():
                self.transport.pause_reading()
            return
        self._input = self._input + data if self._input else data
        if self._is_waiting:
            self.transport.pause_reading()
        else:
            self._parse()

    def _parse(self) -> None:
        """Parse a slice of the frames."""
        if self.transport.is_closing():
            self._input = b""
            return
        data, reader = self._input, self._reader
        try:
            end = reader.slice(data)
            self._limit_controls(reader.controls)
        except TooManyFrames as error:
            self._input = b""
            self.conn.fail(1008, str(error))
            self.handle_parser_exception()
            return
        self._input = data[end:]
        super().data_received(data[:end])
        # After a message, reading goes on when the application has received it.
        if reader.frames > _CHEAP_FRAMES and not self.read_paused:
            self._wait_for_turn()

    def _limit_controls(self, count: int) -> None:
        """Count control frames. Raises: TooManyFrames."""
        if not count:
            return
        now = self.loop.time()
        if now - self._controls_since >= CONTROL_SECONDS:
            self._controls, self._controls_since = 0, now
        self._controls += count
        if self._controls > MAX_CONTROL_FRAMES:
            raise TooManyFrames("too many pings")

    def _wait_for_turn(self) -> None:
        if not (self._is_waiting or self.transport.is_closing()):
            self._is_waiting = True
            self.transport.pause_reading()
            self._turns.wait(self._take_turn)

    def _take_turn(self) -> None:
        self._is_waiting = False
        if not (self.read_paused or self.transport.is_closing()):
            self.transport.resume_reading()
            self._parse()

    def _continue(self) -> None:
        """Parse the input that has arrived already, then continue reading."""
        self.read_paused = False
        if self._input:
            self._wait_for_turn()
        elif not (self._is_waiting or self.transport.is_closing()):
            self.transport.resume_reading()

    async def receive(self) -> Any:
        """Return the next ASGI message."""
        message = await self.queue.get()
        if self.read_paused and self.queue.empty():
            self._continue()
        return message

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
        if message["type"] in ("websocket.accept", "websocket.close"):
            self._continue()

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
        self._continue()  # the client's own closing frame is to be read
        self.close_timer = self.loop.call_later(patience, self.transport.abort)
