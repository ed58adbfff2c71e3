"""Writes frames to a client without waiting, within limits for unread bytes."""

from __future__ import annotations

from typing import Protocol

from nodeapi.frames.close_codes import SLOW_READER
from nodeapi.frames.wire import Wire

MAX_UNREAD_BYTES = 4 * 2**20
"""Unread bytes of a client at which no more is written. A single response may be
longer: it is written to a client that has read the earlier ones."""

STALLED_BYTES = 2**16
"""Unread bytes that a fast client exceeds only briefly, and bytes that a slow client reads
between two checks."""

MAX_TOTAL_UNREAD_BYTES = 256 * 2**20
"""Unread bytes of all clients of a process together."""

_RECOUNT_BYTES = MAX_TOTAL_UNREAD_BYTES // 8
"""Bytes written to lagging clients between two sums of their unread bytes."""


class Lag(Protocol):
    """Receives reports about clients that have unread bytes."""

    def note(self, writer: FrameWriter, written: int) -> None:
        """Record bytes that were written to a lagging client."""


class Backlog:
    """Sums the unread bytes of a process's lagging clients.

    Each client may leave some bytes unread, but many clients could together exceed the
    memory. Above the limit the clients with the most unread bytes are disconnected.
    """

    def __init__(self) -> None:
        self._lagging: set[FrameWriter] = set()
        self._written = 0

    def note(self, writer: FrameWriter, written: int) -> None:
        """Record bytes that were written to a lagging client."""
        self._lagging.add(writer)
        self._written += written
        if self._written >= _RECOUNT_BYTES:
            self._written = 0
            self._relieve()

    def _relieve(self) -> None:
        """Drop clients that caught up; disconnect the slowest until the sum is allowed."""
        waiting = {writer: writer.waiting_bytes for writer in self._lagging}
        excess = sum(waiting.values()) - MAX_TOTAL_UNREAD_BYTES
        for writer in sorted(waiting, key=waiting.__getitem__, reverse=True):
            if excess > 0:
                writer.close(SLOW_READER, "too slow")
                excess -= waiting[writer]
            elif waiting[writer] > STALLED_BYTES:
                continue
            self._lagging.discard(writer)


class FrameWriter:
    """Sends frames to one client, in the order of the calls.

    lag: counts unread bytes; None for sockets with frames too short to count.
    max_unread: bytes; a client that has more unread is disconnected by the next frame.
    """

    def __init__(
        self, wire: Wire, lag: Lag | None = None, max_unread: int = MAX_UNREAD_BYTES
    ) -> None:
        self._wire = wire
        self._lag = lag
        self._max_unread = max_unread
        self._stalled_checks = 0
        self._written_bytes = 0
        self._read_bytes = 0
        """Bytes that the client had read at the last check for a stall."""
        self.is_open = True

    @property
    def waiting_bytes(self) -> int:
        """Bytes that were sent to the client and that it has not read."""
        return self._wire.waiting_bytes

    def send(self, frame: bytes) -> None:
        """Send a frame; disconnect a client that has too much unread."""
        if not self.is_open:
            return
        waiting = self._wire.waiting_bytes
        if waiting > self._max_unread:
            self.close(SLOW_READER, "too slow")
            return
        self._wire.write_text(frame)
        self._written_bytes += len(frame)
        if self._lag is not None and waiting + len(frame) > STALLED_BYTES:
            self._lag.note(self, len(frame))

    def close(self, code: int, reason: str) -> None:
        """Close the connection with a close code; later frames are dropped."""
        if self.is_open:
            self.is_open = False
            self._wire.hang_up(code, reason)

    def close_if_stalled(self) -> None:
        """Disconnect a client that hardly reads, as found by three checks in a row.

        At each of them it has more than STALLED_BYTES unread, and has read less than
        that since the check before. Call it every few seconds: `send` does not notice a
        stall while it has no frames.
        """
        waiting, before = self._wire.waiting_bytes, self._read_bytes
        self._read_bytes = self._written_bytes - waiting
        is_slow = self._read_bytes - before < STALLED_BYTES
        is_stalled = self.is_open and waiting > STALLED_BYTES and is_slow
        self._stalled_checks = self._stalled_checks + 1 if is_stalled else 0
        if self._stalled_checks > 2:
            self.close(SLOW_READER, "too slow")
