"""A result that concurrent callers share, and that is cached for a short time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class SharedResult(Generic[T]):
    """Calls a function at most once per interval, however often the result is needed.

    produce: the function. It must not raise.
    fresh_seconds: how long a result is returned before `produce` is called again.
    """

    def __init__(
        self, produce: Callable[[], Coroutine[Any, Any, T]], fresh_seconds: float
    ) -> None:
        self._produce = produce
        self._fresh_seconds = fresh_seconds
        self._task: asyncio.Task[T] | None = None
        self._fresh_until = 0.0

    async def get(self) -> T:
        """Return the cached result, or wait for a new one."""
        task = self._task
        if task is None or (task.done() and time.monotonic() > self._fresh_until):
            task = self._task = asyncio.create_task(self._run())
        return await asyncio.shield(task)

    async def stop(self) -> None:
        """Cancel a call that is in progress."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> T:
        result = await self._produce()
        self._fresh_until = time.monotonic() + self._fresh_seconds
        return result
