"""Limits of one socket, and of handshakes in progress.

The number of sockets of a dapp is counted over all processes, in
`wallets.services.presence`.
"""

from __future__ import annotations

from collections.abc import Callable

MAX_BATCH_CALLS = 20
"""Calls in one batch."""

MAX_CALLS = 64
"""Calls of one socket that are in progress."""

MAX_SUBSCRIPTIONS = 64
"""Open subscriptions of one socket."""

UNREAD_BYTES = 16 * 2**20
"""Unread bytes of a client at which its socket is closed. An import of a hundred blocks
sends 12 MiB of heads to MAX_SUBSCRIPTIONS; slow clients that go on reading keep up."""

MAX_HANDSHAKES = 4096
"""Handshakes of a process that wait for the database; further ones get 503."""

MAX_INBOXES = 20
"""Sockets of one user's open pages in one process: tabs and devices."""

MAX_INBOX_HANDSHAKES = 64
"""Handshakes of `/ws/ui` that wait for the database in a process. The limit is low,
because their cookies may be forged."""

CALLS_PER_SECOND = 50.0
"""Sustained rate of calls of one socket."""

BURST = 200.0
"""Calls of one socket that may arrive at once."""

MAX_REJECTED_CALLS = 400.0
"""Calls above the limit that are rejected with an error before the socket is closed."""


class Bucket:
    """A token bucket whose balance may become negative.

    clock: a monotonic clock, in seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._filled_at = clock()
        self._level = BURST

    def take(self, calls: int = 1) -> float:
        """Count calls; return the seconds until they are allowed, 0 if they are now.

        Rejected calls count too, so that a client that does not pause has to wait
        longer.
        """
        now = self._clock()
        earned = (now - self._filled_at) * CALLS_PER_SECOND
        self._filled_at = now
        self._level = min(BURST, self._level + earned) - calls
        return max(0.0, -self._level / CALLS_PER_SECOND)

    @property
    def is_exhausted(self) -> bool:
        """Whether more than MAX_REJECTED_CALLS above the limit were rejected."""
        return self._level < -MAX_REJECTED_CALLS
