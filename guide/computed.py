"""Facts for anonymous visitors, computed at most once in some seconds in each process."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Computed(Generic[T]):
    """The result of a function, which is kept for some seconds.

    Threads that need it while it is computed wait for that one computation, so that the
    number of requests does not change the load.

    compute: may raise; the next call then computes again.
    clock: returns seconds.
    """

    def __init__(
        self,
        compute: Callable[[], T],
        seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._compute = compute
        self._seconds = seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: tuple[T, float] | None = None

    def get(self) -> T:
        """Return the result, at most `seconds` old."""
        kept = self._kept
        if kept is not None and self._clock() < kept[1]:
            return kept[0]
        with self._lock:
            kept = self._kept
            if kept is not None and self._clock() < kept[1]:
                return kept[0]
            found = self._compute()
            self._kept = found, self._clock() + self._seconds
            return found

    def clear(self) -> None:
        """Forget the cached result, so that the next call computes it."""
        self._kept = None
