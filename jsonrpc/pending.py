"""The answer to a call that waits for nothing but one future."""

from __future__ import annotations

from asyncio import Future
from collections.abc import Awaitable, Callable, Generator
from typing import Any

from jsonrpc.answers import Answer
from jsonrpc.deadlines import Deadlines


class Pending:
    """An answer that can be finished as soon as a future is done, or awaited.

    finish: makes the answer, or something to await for it; told whether time was up.
    when: the loop's time at which it is.
    """

    __slots__ = ("_deadlines", "_expired", "_finish", "future", "when")

    def __init__(
        self,
        future: Future[Any],
        finish: Callable[[bool], Answer | Awaitable[Answer]],
        deadlines: Deadlines,
    ) -> None:
        self.future = future
        self._finish = finish
        self._deadlines = deadlines
        self._expired = False
        self.when = deadlines.watch(self)

    def finish(self) -> Answer | Awaitable[Answer]:
        """Return the answer, or something to await for it; the future must be done."""
        self._deadlines.leave(self)
        return self._finish(self._expired)

    def expire(self) -> None:
        """Have the answer say that it took too long."""
        self._expired = True
        self.future.cancel()

    def __await__(self) -> Generator[Any, None, Answer]:
        try:
            yield from self.future
        except BaseException:
            if not self.future.done():  # whoever awaits it was given up
                self._deadlines.leave(self)
                raise
        answer = self.finish()
        if isinstance(answer, Awaitable):
            return (yield from answer.__await__())
        return answer
