"""The answer to a call that waits for nothing but one future."""

from __future__ import annotations

import asyncio
from asyncio import Future
from collections.abc import Awaitable, Callable, Generator
from typing import Any

from jsonrpc.answers import Answer
from jsonrpc.deadlines import Deadlines


class Pending:
    """An answer that can be finished as soon as a future is done, or awaited.

    finish: makes the answer, or something to await for it, by the loop's time `when`.
    when: the loop's time at which it has to be there.
    is_late: whether it was not.
    """

    __slots__ = ("_deadlines", "_finish", "future", "is_late", "when")

    def __init__(
        self,
        future: Future[Any],
        finish: Callable[[Pending], Answer | Awaitable[Answer]],
        deadlines: Deadlines,
    ) -> None:
        self.future = future
        self._finish = finish
        self._deadlines = deadlines
        self.is_late = False
        self.when = deadlines.watch(self)

    def finish(self) -> Answer | Awaitable[Answer]:
        """Return the answer, or something to await for it; the future must be done.

        Raises: CancelledError, if somebody else cancelled the future.
        """
        self._deadlines.leave(self)
        return self._finish(self)

    def expire(self) -> None:
        """Have the answer say that it took too long."""
        self.is_late = self.future.cancel()

    def __await__(self) -> Generator[Any, None, Answer]:
        return self._wait().__await__()

    async def _wait(self) -> Answer:
        try:
            await asyncio.wait([self.future])
        except BaseException:  # whoever awaits it was given up
            self._deadlines.leave(self)
            raise
        answer = self.finish()
        return await answer if isinstance(answer, Awaitable) else answer
