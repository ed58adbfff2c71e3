"""What one socket may do, and how many may come at once.

How many a dapp may have is counted over all processes, in `wallets.services.presence`.
"""

from __future__ import annotations

from collections.abc import Callable

MAX_BATCH_CALLS = 20
"""Calls in one batch."""

MAX_CALLS = 64
"""Calls of one socket that are under way."""

MAX_SUBSCRIPTIONS = 64
"""Of one socket."""

MAX_HANDSHAKES = 4096
"""Handshakes of a process that wait for the database; the next one is told to retry."""

MAX_INBOXES = 20
"""Sockets of one user's open inboxes, in one process: tabs and devices."""

MAX_INBOX_HANDSHAKES = 64
"""Those of a process that wait for the database: anybody may make up cookies."""

CALLS_PER_SECOND = 50.0
"""Calls of one socket in the long run."""

BURST = 200.0
"""Calls of one socket that may come at once."""

PATIENCE = 400.0
"""Calls beyond what is allowed that are answered with an error; then the socket closes."""


class Bucket:
    """Counts calls: a token bucket that may be overdrawn by those who are patient.

    clock: seconds that never go back.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._filled_at = clock()
        self._level = BURST

    def take(self, calls: int = 1) -> float:
        """Count calls; return the seconds after which they would have been allowed.

        0 when they are allowed. Refused ones count as well: whoever goes on has to
        wait longer, see `is_exhausted`.
        """
        now = self._clock()
        earned = (now - self._filled_at) * CALLS_PER_SECOND
        self._filled_at = now
        self._level = min(BURST, self._level + earned) - calls
        return max(0.0, -self._level / CALLS_PER_SECOND)

    @property
    def is_exhausted(self) -> bool:
        """Whether so much was refused that nobody listens to the refusals."""
        return self._level < -PATIENCE
