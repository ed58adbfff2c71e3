"""A socket's way out: written at once, and bounded."""

from __future__ import annotations

from typing import Protocol

WIRE = "portcullis.wire"
"""The extension in a socket's ASGI scope that is a `Wire`."""

MAX_WAITING_BYTES = 4 * 2**20
"""What a client may leave unread before more is written. A single answer may be longer:
it is written to a client that has read what came before."""

STALLED_BYTES = 2**16
"""What a client that reads has never waiting for long."""

SLOW_READER = 4008
"""Close code for a client that does not read what it asked for."""

REVOKED = 4401
"""Close code when the token, or the log-in, that opened the socket is good no longer."""

TOO_FAST = 4429
"""Close code for a client that goes on although its calls are refused."""

NOT_TEXT = 1003
"""Close code for a binary frame (RFC 6455)."""

NOTHING_IS_TAKEN = 1008
"""Close code for a frame to where none is read (RFC 6455)."""

GOING_ON_IS_FUTILE = 1011
"""Close code when a subscription can't be served as it was promised (RFC 6455)."""


class Wire(Protocol):
    """A connection, as the server offers it for writing without waiting."""

    @property
    def waiting_bytes(self) -> int:
        """What has been written and not yet taken by the kernel."""

    def write_text(self, frame: bytes) -> None:
        """Write a text frame; nothing happens when the connection is closing."""

    def hang_up(self, code: int, reason: str) -> None:
        """Write a closing frame, and cut the connection when it is not answered."""


class Outbox:
    """Sends frames to one client, in the order of the calls."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._stalled_looks = 0
        self.is_open = True

    def send(self, frame: bytes) -> None:
        """Send a frame; a client that has too much unread is disconnected instead."""
        if not self.is_open:
            return
        if self._wire.waiting_bytes > MAX_WAITING_BYTES:
            self.close(SLOW_READER, "too slow")
        else:
            self._wire.write_text(frame)

    def close(self, code: int, reason: str) -> None:
        """Disconnect; nothing is sent any more."""
        if self.is_open:
            self.is_open = False
            self._wire.hang_up(code, reason)

    def close_if_stalled(self) -> None:
        """Disconnect a client that had much unread at the last look, and has it still.

        To be called every few seconds: nobody else comes by when nothing is sent.
        """
        is_stalled = self.is_open and self._wire.waiting_bytes > STALLED_BYTES
        self._stalled_looks = self._stalled_looks + 1 if is_stalled else 0
        if self._stalled_looks > 2:
            self.close(SLOW_READER, "too slow")
