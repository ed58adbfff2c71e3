"""Reads in flight that concurrent callers share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")


class SharedReads:
    """Runs one read at a time for each key."""

    def __init__(self) -> None:
        self._reading: dict[Hashable, asyncio.Task[Any]] = {}

    async def get(self, key: Hashable, read: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Return the result of a read. Concurrent callers with the same key share it."""
        task: asyncio.Task[T] | None = self._reading.get(key)
        if task is None:
            task = asyncio.create_task(read())
            self._reading[key] = task
            task.add_done_callback(partial(self._end, key))
        # A caller that disconnects does not end the read of the others.
        return await asyncio.shield(task)

    async def close(self) -> None:
        """Cancel all reads."""
        tasks = [*self._reading.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _end(self, key: Hashable, task: asyncio.Task[Any]) -> None:
        del self._reading[key]
        if not task.cancelled():
            task.exception()  # otherwise asyncio would log it if all callers are gone
