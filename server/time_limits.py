"""Time limits of connections, and detection of clients that have stopped reading."""

from __future__ import annotations

HEADER_SECONDS = 30.0
"""Time limit for receiving the headers of a request. For the first request it begins when
the connection is opened, for later ones with their first byte. geth's limit."""

KEEP_ALIVE_SECONDS = 120
"""How long a connection may be idle between two requests. geth's limit. Clients send POSTs
on pooled connections and do not repeat one that met a closed connection."""

DISCARD_SECONDS = 30.0
"""Time limit for reading the rest of a body after the response."""

REFUSAL_SECONDS = 2.0
"""Time for a rejected client to read the response."""


class StallDetector:
    """Measures for how long a client has read nothing of a response."""

    __slots__ = ("_since", "_unread")

    def __init__(self) -> None:
        self._unread = 0
        """Bytes that the client had to read at the last check."""
        self._since = 0.0

    def seconds(self, unread: int, now: float) -> float:
        """Return the seconds since the number of unread bytes last changed.

        unread: bytes that the client has not read, more than 0. now: the loop's time.
        """
        if unread != self._unread:
            self._unread, self._since = unread, now
        return now - self._since

    def end(self) -> None:
        """Record that the client has read everything."""
        self._unread = 0
