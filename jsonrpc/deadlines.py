"""A deadline for whatever is waited for, cheap enough for every request.

`asyncio.timeout` sets and cancels a timer of the loop each time, for some 5 µs. As all
deadlines of one kind are equally far away, the oldest is always the next, and one timer
does for all.
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Protocol


class Expiring(Protocol):
    """Something with a deadline."""

    @property
    def when(self) -> float:
        """The loop's time at which it ends."""

    def expire(self) -> None:
        """Give it up: its time has come."""


class Deadlines:
    """Hands out deadlines that are all the same number of seconds away.

    Belongs to the event loop in which it is used first.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._waiting: dict[Expiring, None] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The event loop that all of this belongs to."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        return self._loop

    def deadline(self) -> Deadline:
        """Return a context manager that raises TimeoutError when time is up."""
        return Deadline(self)

    def watch(self, what: Expiring) -> float:
        """Have something expire when its time is up; return the loop's time of that."""
        loop = self.loop
        when = loop.time() + self.seconds
        self._waiting[what] = None
        if self._timer is None:
            self._timer = loop.call_at(when, self._expire, loop)
        return when

    def leave(self, what: Expiring) -> None:
        """Watch it no longer."""
        self._waiting.pop(what, None)

    def _expire(self, loop: asyncio.AbstractEventLoop) -> None:
        """End what has come to its time, and wait for the next."""
        self._timer = None
        now = loop.time()
        while self._waiting:
            oldest = next(iter(self._waiting))
            if oldest.when > now:
                self._timer = loop.call_at(oldest.when, self._expire, loop)
                return
            del self._waiting[oldest]
            oldest.expire()


class Deadline:
    """A deadline for the current task's work inside the `with` block.

    when: the loop's time at which it ends.
    expired: whether it has ended before the work did.
    """

    __slots__ = ("_deadlines", "_task", "expired", "when")

    def __init__(self, deadlines: Deadlines) -> None:
        self._deadlines = deadlines
        self._task: asyncio.Task[object] | None = None
        self.expired = False
        self.when = 0.0

    def __enter__(self) -> Deadline:
        deadlines = self._deadlines
        self.when = deadlines.watch(self)
        # Told of the loop, it need not ask the kernel which process this is.
        self._task = asyncio.current_task(deadlines.loop)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._deadlines.leave(self)
        if (
            self.expired
            and kind is asyncio.CancelledError
            and self._task is not None
            and self._task.uncancel() == 0  # else somebody else cancelled it, too
        ):
            raise TimeoutError from error

    def expire(self) -> None:
        """Interrupt the task."""
        self.expired = True
        if self._task is not None:
            self._task.cancel()
