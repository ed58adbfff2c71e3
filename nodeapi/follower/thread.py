"""An event loop in a separate thread, for callers without an event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future, wait
from types import TracebackType
from typing import Any, TypeVar

Result = TypeVar("Result")

IDLE_SECONDS = 0.25
"""Maximum time between two checks of the follower's stop event."""


class Stopped(Exception):
    """Raised if the caller has to stop before its coroutine has ended."""


class LoopThread:
    """Runs coroutines during a `with` block. Those in progress at its end are cancelled."""

    def __init__(self, name: str) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def __enter__(self) -> LoopThread:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()

    def submit(self, work: Coroutine[Any, Any, Result]) -> Future[Result]:
        """Start a coroutine. Cancelling the result cancels the coroutine."""
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def run(
        self, work: Coroutine[Any, Any, Result], stop: threading.Event | None = None
    ) -> Result:
        """Wait for a coroutine. It is cancelled if the wait is interrupted.

        stop: ends the wait when it is set. Raises: Stopped.
        """
        future = self.submit(work)
        try:
            while stop is not None and not future.done():
                if stop.is_set():
                    raise Stopped
                wait([future], IDLE_SECONDS)
            return future.result()
        finally:
            future.cancel()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self.loop) as runner:
            runner.get_loop().run_forever()
