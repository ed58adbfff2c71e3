"""Heartbeats, by which a supervisor detects a hanging worker process.

While it serves, a worker's event loop writes a byte to a pipe twice a second. Its
supervisor reads the pipe regularly and adds up the time without a byte. This detects an
event loop that does not run for any reason: a stopped process, an endless loop, a lock.
No connections or requests are needed, so a busy worker is not mistaken for a hanging
one.

If the supervisor itself was stopped, alone or with its machine, it finds unread bytes
in the pipes, or workers that could not write. Time in which it did not run is therefore
not counted (`TurnClock`).
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from contextlib import suppress

BEAT_SECONDS = 0.5
"""Pause between two beats of a worker."""

TURN_SECONDS = 0.2
"""Pause between two turns of a supervisor."""


async def beat(descriptor: int) -> None:
    """Write heartbeats to a pipe until cancelled, then close it.

    Errors of a full pipe, or of one without a reader, are ignored.
    """
    os.set_blocking(descriptor, False)
    try:
        while True:
            with suppress(BlockingIOError, BrokenPipeError):
                os.write(descriptor, b".")
            await asyncio.sleep(BEAT_SECONDS)
    finally:
        os.close(descriptor)


class TurnClock:
    """Measures time by the regular calls of this process.

    A call counts at most two intervals, even if the last call was longer ago. While
    this process did not run, other processes may not have run either.

    clock: monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last = clock()

    def turn(self) -> float:
        """Return the seconds to count since the last call."""
        last, self._last = self._last, self._clock()
        return min(self._last - last, 2 * TURN_SECONDS)


class Pulse:
    """The supervisor's end of a worker's pipe.

    has_begun: whether a heartbeat has arrived, which means that the worker serves.
    silent_seconds: counted time since the start or the last heartbeat.
    """

    def __init__(self, descriptor: int) -> None:
        """descriptor: of the pipe, for reading. It is closed with this object."""
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self.has_begun = False
        self.silent_seconds = 0.0

    def read(self, passed_seconds: float) -> None:
        """Read the heartbeats since the last call.

        passed_seconds: the time since then, see `TurnClock.turn`.
        """
        try:
            has_come = bool(os.read(self._descriptor, 65536))
        except BlockingIOError:
            has_come = False
        self.has_begun |= has_come
        self.silent_seconds = 0 if has_come else self.silent_seconds + passed_seconds

    def close(self) -> None:
        """Close the pipe."""
        os.close(self._descriptor)
