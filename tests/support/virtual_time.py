"""An event loop whose clock jumps to the next timer, so that sleeps take no time."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any


class _Selector(selectors.DefaultSelector):
    """A selector that does not wait. It moves the clock by the timeout instead."""

    now = 0.0

    def select(self, timeout: float | None = None) -> Any:
        """Return the ready file descriptors."""
        self.now += timeout or 0.0
        return super().select(0 if timeout is not None else None)


class _Loop(asyncio.SelectorEventLoop):
    """An event loop in which only timers move the clock."""

    def __init__(self) -> None:
        self._clock = _Selector()
        super().__init__(self._clock)

    def time(self) -> float:
        """Return the seconds of the jumping clock."""
        return self._clock.now


def run(work: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine that only waits for timers, and return its result."""
    with asyncio.Runner(loop_factory=_Loop) as runner:
        return runner.run(work)
