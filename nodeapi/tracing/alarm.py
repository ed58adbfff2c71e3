"""A time limit for code that does not check the time, such as the interpreter's loop."""

from __future__ import annotations

import ctypes
import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

CHECK_SECONDS = 0.1
"""Interval at which `Alarm.check` should be called; tasks may exceed their limit by it."""


class Alarm:
    """Interrupts one thread when its time is over. Another thread checks the time.

    The interruption is an exception that is raised between two instructions of Python. A
    function in C is not interrupted before it returns.
    """

    def __init__(self, interruption: type[BaseException]) -> None:
        """Begin without a time limit. interruption: the exception, without arguments."""
        self._interruption = interruption
        self._lock = threading.Lock()
        self._deadline = math.inf
        self._thread = 0
        self._has_fired = False

    @contextmanager
    def until(self, deadline: float) -> Iterator[None]:
        """Limit the time of a `with` block in the calling thread.

        deadline: in the time of `time.monotonic()`.

        Raises: the interruption, within the block or at its end.
        """
        self._thread = threading.get_ident()
        self._has_fired = False
        self._deadline = deadline
        try:
            yield
        finally:
            with self._lock:
                self._deadline = math.inf
            if self._has_fired:
                self._send(None)  # what was sent and has not been raised yet

    def check(self) -> None:
        """Interrupt the thread if its time is over. Called by another thread."""
        if time.monotonic() < self._deadline:
            return
        with self._lock:
            if time.monotonic() < self._deadline:
                return
            self._deadline = math.inf
            self._has_fired = True
            self._send(ctypes.py_object(self._interruption))

    def _send(self, interruption: ctypes.py_object[type[BaseException]] | None) -> None:
        """Let the thread raise an exception next. None cancels an exception that was not raised yet."""
        thread = ctypes.c_ulong(self._thread)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, interruption)
