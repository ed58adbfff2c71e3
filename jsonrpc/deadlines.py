"""A deadline for whatever is waited for, cheap enough for every request.

`asyncio.timeout` sets and cancels a timer of the loop each time, for some 5 µs. As all
deadlines of one kind are equally far away, the oldest is always the next, and one timer
does for all.
"""

from __future__ import annotations

import asyncio
from types import TracebackType


class Deadlines:
    """Hands out deadlines that are all the same number of seconds away.

    Belongs to the event loop in which it is used first.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._waiting: dict[Deadline, None] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def deadline(self) -> Deadline:
        """Return a context manager that raises TimeoutError when time is up."""
        return Deadline(self)

    def enter(self, deadline: Deadline) -> asyncio.Task[object] | None:
        """Watch over the current task from now on, and return it."""
        loop = self._loop
        if loop is None:
            loop = self._loop = asyncio.get_running_loop()
        deadline.when = loop.time() + self.seconds
        self._waiting[deadline] = None
        if self._timer is None:
            self._timer = loop.call_at(deadline.when, self._expire, loop)
        # Told of the loop, it need not ask the kernel which process this is.
        return asyncio.current_task(loop)

    def leave(self, deadline: Deadline) -> None:
        """Watch no longer."""
        self._waiting.pop(deadline, None)

    def _expire(self, loop: asyncio.AbstractEventLoop) -> None:
        """Interrupt the tasks whose time is up, and wait for the next."""
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
        self._task = self._deadlines.enter(self)
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
