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

MAX_WAITING_BYTES_OF_ALL = 256 * 2**20
"""What all clients of a process together may leave unread."""

_RECOUNT_BYTES = MAX_WAITING_BYTES_OF_ALL // 8
"""So much is written to those who lag between two counts of what they leave unread."""

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


class Backlog:
    """What all clients of a process leave unread, counted where it is much.

    Each may leave some, but a crowd could leave more than there is memory. Beyond what
    is allowed those go first who leave most.
    """

    def __init__(self) -> None:
        self._lagging: set[Outbox] = set()
        self._written = 0

    def note(self, outbox: Outbox, written: int) -> None:
        """Take note of bytes that were written to a client that lags."""
        self._lagging.add(outbox)
        self._written += written
        if self._written >= _RECOUNT_BYTES:
            self._written = 0
            self._relieve()

    def _relieve(self) -> None:
        """Forget who lags no more; disconnect those with most until it is bearable."""
        waiting = {outbox: outbox.waiting_bytes for outbox in self._lagging}
        excess = sum(waiting.values()) - MAX_WAITING_BYTES_OF_ALL
        for outbox in sorted(waiting, key=waiting.__getitem__, reverse=True):
            if excess > 0:
                outbox.close(SLOW_READER, "too slow")
                excess -= waiting[outbox]
            elif waiting[outbox] > STALLED_BYTES:
                continue
            self._lagging.discard(outbox)


class Outbox:
    """Sends frames to one client, in the order of the calls.

    backlog: of the process, None where frames are too short to count.
    """

    def __init__(self, wire: Wire, backlog: Backlog | None = None) -> None:
        self._wire = wire
        self._backlog = backlog
        self._stalled_looks = 0
        self.is_open = True

    @property
    def waiting_bytes(self) -> int:
        """What the client has been sent and not read."""
        return self._wire.waiting_bytes

    def send(self, frame: bytes) -> None:
        """Send a frame; a client that has too much unread is disconnected instead."""
        if not self.is_open:
            return
        waiting = self._wire.waiting_bytes
        if waiting > MAX_WAITING_BYTES:
            self.close(SLOW_READER, "too slow")
            return
        self._wire.write_text(frame)
        if self._backlog is not None and waiting + len(frame) > STALLED_BYTES:
            self._backlog.note(self, len(frame))

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
