"""Deadlines that are cheap enough for every request.

`asyncio.timeout` sets and cancels a timer of the event loop each time, which takes
about 5 µs. Deadlines of one object all have the same duration. The oldest one always
expires first, so one timer is enough for all of them.
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Any, TypeVar

from jsonrpc.errors import RequestTimedOut
from jsonrpc.later import Later

T = TypeVar("T")


class Deadlines:
    """Creates deadlines of the same duration in seconds.

    An object belongs to the event loop in which it is used first.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._pending: dict[Later[Any] | Deadline, float] = {}
        """Pending work and the event loop's time at which it expires, oldest first."""
        self._timer: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The event loop that this object belongs to."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        return self._loop

    def limit(self, later: Later[T]) -> Later[T]:
        """Abort a pending operation with RequestTimedOut at the deadline.

        Returns the same object.
        """
        if not later.is_done:
            self.add(later)
            later.when_done(self.remove)
        return later

    def deadline(self) -> Deadline:
        """Return a context manager that raises TimeoutError at the deadline."""
        return Deadline(self)

    def add(self, work: Later[Any] | Deadline) -> None:
        """Start the deadline of some work."""
        loop = self.loop
        when = loop.time() + self.seconds
        self._pending[work] = when
        if self._timer is None:
            self._timer = loop.call_at(when, self._expire, loop)

    def remove(self, work: Later[Any] | Deadline) -> None:
        """Remove work that is done."""
        self._pending.pop(work, None)

    def _expire(self, loop: asyncio.AbstractEventLoop) -> None:
        """Abort expired work, and set the timer for the next deadline."""
        self._timer = None
        now = loop.time()
        while self._pending:
            oldest, when = next(iter(self._pending.items()))
            if when > now:
                self._timer = loop.call_at(when, self._expire, loop)
                return
            del self._pending[oldest]
            if isinstance(oldest, Later):
                oldest.abort(RequestTimedOut())
            else:
                oldest.expire()


class Deadline:
    """A context manager that limits the work of the current task.

    expired: whether the deadline passed before the work was done.
    """

    __slots__ = ("_deadlines", "_task", "expired")

    def __init__(self, deadlines: Deadlines) -> None:
        self._deadlines = deadlines
        self._task: asyncio.Task[object] | None = None
        self.expired = False

    def __enter__(self) -> Deadline:
        self._deadlines.add(self)
        # With the loop as an argument, asyncio need not ask the kernel for the process id.
        self._task = asyncio.current_task(self._deadlines.loop)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._deadlines.remove(self)
        if (
            self.expired
            and kind is asyncio.CancelledError
            and self._task is not None
            and self._task.uncancel()
            == 0  # otherwise the task was cancelled elsewhere too
        ):
            raise TimeoutError from error

    def expire(self) -> None:
        """Cancel the work whose time is over."""
        self.expired = True
        if self._task is not None:
            self._task.cancel()
