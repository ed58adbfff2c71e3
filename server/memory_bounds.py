"""Bounds for the bytes that a server process buffers for its clients.

The bytes of a connection are those of a request body that has not been answered, and
those of a response that the client has not read. Beyond a limit, connections are
disconnected until less than the limit is buffered, the slowest first. This module knows
neither HTTP nor a server: a protocol reports sizes, and is called back.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Literal

Scope = Literal["process", "key", "address"]
"""The scope of the exceeded limit: process, key or address."""

PROGRESS_BYTES = 2**16
"""Least number of bytes that count as progress. A client must not protect its
connection by reading single bytes."""

RECENT_SECONDS = 10.0
"""Time after which progress is no longer considered."""

SETTLING_SECONDS = 0.25
"""Time after a beginning in which progress does not count, because kernel buffers fill
up."""

_KEPT = 7 / 8
"""Share of a limit that may stay buffered after it was exceeded, so that the next bytes do
not make another search for the slowest necessary."""


@dataclass(frozen=True, slots=True)
class ByteLimits:
    """Limits of the buffered bytes: of a process, of an API key and of an address."""

    process: int
    key: int
    address: int


class Buffer:
    """The bytes that are buffered for one connection.

    disconnect: called with the exceeded limit when the connection has to be closed. Its
        bytes are no longer counted then.
    position: returns the bytes received of a body, or unread of a response.
    key, address: owners of the bytes. None: counted for the process only.
    """

    __slots__ = (
        "_has_moved",
        "_moved_at",
        "_position",
        "address",
        "disconnect",
        "key",
        "position",
        "size",
    )

    def __init__(
        self, disconnect: Callable[[Scope], None], position: Callable[[], int]
    ) -> None:
        self.disconnect = disconnect
        self.position = position
        self.key: Hashable = None
        self.address: Hashable = None
        self.size = 0
        self._has_moved = False
        self._moved_at = 0.0
        self._position: int | None = None

    def slowness(self, now: float) -> tuple[bool, float]:
        """Return a sort key: whether there was no progress, and the time without it.

        The time is weighted by the number of bytes. A client that has just begun counts
        as slower than one with recent progress, because most connections of a flood
        have just begun.
        """
        self.progress(now)
        idle = now - self._moved_at
        return not self._has_moved or idle > RECENT_SECONDS, self.size * idle

    def begin(self, now: float) -> None:
        """Record the beginning of a body or a response."""
        self._position, self._moved_at = None, now

    def progress(self, now: float) -> None:
        """Record progress, if the client has moved enough bytes since the last one."""
        if self._position is None:
            if now - self._moved_at >= SETTLING_SECONDS:
                self._position = self.position()
            return
        position = self.position()
        if abs(position - self._position) >= PROGRESS_BYTES:
            self._position, self._moved_at, self._has_moved = position, now, True


class BufferedBytes:
    """Counts the buffered bytes of a process, and disconnects the slowest clients.

    clock: seconds, of any origin.
    """

    def __init__(
        self, limits: ByteLimits, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._limits = limits
        self._clock = clock
        self._buffers: set[Buffer] = set()
        self._by_key: dict[Hashable, int] = {}
        self._by_address: dict[Hashable, int] = {}
        self.size = 0
        """Bytes that are buffered now."""

    def set(self, buffer: Buffer, size: int) -> None:
        """Report the number of bytes that are buffered for a connection.

        This may disconnect connections, including the reported one.
        """
        added = size - buffer.size
        if not added:
            return
        if not buffer.size:
            self._buffers.add(buffer)
            buffer.begin(self._clock())
        elif not size:
            self._buffers.discard(buffer)
        buffer.size = size
        self.size += added
        _add(self._by_key, buffer.key, added)
        _add(self._by_address, buffer.address, added)
        if added > 0:
            self._enforce(buffer)

    def assign(self, buffer: Buffer, key: Hashable, address: Hashable) -> None:
        """Set the owners of a connection's bytes, also of those that are buffered already."""
        if buffer.size:
            _add(self._by_key, buffer.key, -buffer.size)
            _add(self._by_address, buffer.address, -buffer.size)
        buffer.key, buffer.address = key, address
        if buffer.size:
            _add(self._by_key, key, buffer.size)
            _add(self._by_address, address, buffer.size)
            self._enforce(buffer)

    def begin(self, buffer: Buffer) -> None:
        """Record the beginning of a body or a response."""
        buffer.begin(self._clock())

    def progress(self, buffer: Buffer) -> None:
        """Record progress of a client. To be called about once a second."""
        buffer.progress(self._clock())

    def _enforce(self, buffer: Buffer) -> None:
        """Disconnect clients if an owner of a buffer, or the process, exceeds its limit."""
        limits, key, address = self._limits, buffer.key, buffer.address
        size = self._by_key.get(key, 0)
        if size > limits.key:
            owned = [one for one in self._buffers if one.key == key]
            self._relieve(owned, size, limits.key, "key")
        size = self._by_address.get(address, 0)
        if size > limits.address:
            owned = [one for one in self._buffers if one.address == address]
            self._relieve(owned, size, limits.address, "address")
        if self.size > limits.process:
            self._relieve(self._buffers, self.size, limits.process, "process")

    def _relieve(
        self, buffers: Iterable[Buffer], size: int, limit: int, scope: Scope
    ) -> None:
        """Disconnect the slowest clients until the limit is met, except the last one.

        The buffers of a single connection are bounded by the longest response.
        """
        now = self._clock()
        slowest = sorted(buffers, key=lambda one: one.slowness(now), reverse=True)
        for buffer in slowest[:-1]:
            if size <= limit * _KEPT:
                return
            size -= buffer.size
            self.set(buffer, 0)
            buffer.disconnect(scope)


def _add(sizes: dict[Hashable, int], owner: Hashable, added: int) -> None:
    """Add to the bytes of an owner. No effect without an owner."""
    if owner is None:
        return
    size = sizes.get(owner, 0) + added
    if size:
        sizes[owner] = size
    else:
        del sizes[owner]
