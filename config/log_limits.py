"""A limit for log lines that clients can cause at will: one per kind and minute.

Without it, clients that send malformed bytes could fill the disk and hide other lines.
Only the kinds that are listed here are limited; all other lines are written.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable

WINDOW_SECONDS = 60.0

CLIENT_FAULTS = frozenset(
    {
        ("uvicorn.error", "Invalid HTTP request received."),
        ("server.http", "Invalid HTTP request received."),
        ("uvicorn.error", "Unsupported upgrade request."),
        ("uvicorn.error", "ASGI callable returned without completing handshake."),
        ("uvicorn.error", "Invalid UTF-8 sequence received from client."),
    }
)
"""Loggers and messages without their arguments. Each reports malformed HTTP or WebSocket
data, or a refused handshake; their tracebacks contain nothing useful."""

Schedule = Callable[[float, Callable[[], None]], None]
"""Calls a function after a number of seconds, in any thread."""


def in_daemon_thread(seconds: float, function: Callable[[], None]) -> None:
    """Call a function after some seconds, in a thread that does not delay the exit."""
    timer = threading.Timer(seconds, function)
    timer.daemon = True
    timer.start()


class RepeatLimit(logging.Filter):
    """Passes the first line of a kind, and then one line a minute with a count.

    schedule: the clock.
    """

    def __init__(self, schedule: Schedule = in_daemon_thread) -> None:
        super().__init__()
        self._schedule = schedule
        self._lock = threading.Lock()
        self._left_out: dict[tuple[str, str], Counter[int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the log record is written now."""
        kind = (record.name, str(record.msg))
        if kind not in CLIENT_FAULTS:
            return True
        record.exc_info = record.exc_text = None
        with self._lock:
            if kind in self._left_out:
                self._left_out[kind][record.levelno] += 1
                return False
            self._left_out[kind] = Counter()
        self._schedule(WINDOW_SECONDS, lambda: self._end_window(kind))
        return True

    def _end_window(self, kind: tuple[str, str]) -> None:
        """Log the number of suppressed lines; if there are none, pass the next line."""
        with self._lock:
            left_out = self._left_out.pop(kind)
            if left_out:
                self._left_out[kind] = Counter()
        if left_out:
            name, message = kind
            logging.getLogger(name).log(
                max(left_out),
                "%s (%d more in the last %d s)",
                message,
                left_out.total(),
                WINDOW_SECONDS,
            )
            self._schedule(WINDOW_SECONDS, lambda: self._end_window(kind))
