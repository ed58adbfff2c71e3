"""A limit for log lines about an outage of the database: one a minute, then one at its end.

Every process that uses the database notices an outage, often with each request. The filter
in this module passes one line a minute for all processes that share its file, in place of
all lines about failed connections. A process that reaches the database again logs a line
with `extra=AVAILABLE`; the first of these passes, if the outage was reported.
"""

from __future__ import annotations

import fcntl
import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import psycopg

from postgres.errors import ConnectionFailed

WINDOW_SECONDS = 60.0

_STATE: Final = "database"

AVAILABLE: Final = {_STATE: "available"}
"""`extra` of the log line of a process that reaches the database again."""

UNAVAILABLE: Final = {_STATE: "unavailable"}
"""`extra` of a log line about an outage that is not evident from an exception."""

_OUTAGE_STATES = ("08", "57P", "53300")
"""Beginnings of SQLSTATEs: lost connections, a server that stops or starts, and too many
connections. Source: https://www.postgresql.org/docs/current/errcodes-appendix.html"""

_NONE: Final[tuple[float, float | None]] = (-WINDOW_SECONDS, None)
"""No report."""

_LENGTH = 64
"""Bytes of the file. All reports have the same length, so that each replaces the last."""


def outage_in(error: BaseException | None) -> BaseException | None:
    """Return the error that shows an outage of the database: `error` or one of its causes.

    Returns: None for other errors, such as a statement that failed or timed out.
    """
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if _is_outage(error):
            return error
        error = error.__cause__ or error.__context__
    return None


def _is_outage(error: BaseException) -> bool:
    if isinstance(error, ConnectionFailed):
        return True
    if not isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return False
    return error.sqlstate is None or error.sqlstate.startswith(_OUTAGE_STATES)


class OutageLimit(logging.Filter):
    """Passes one line a minute about an outage, and one when it is over.

    path: the file with the last report, which processes share. Its folder exists.
    clock: seconds that all processes share.

    A line is about an outage if `outage_in` finds one in its `exc_info` or its
    arguments, or if it has `extra=UNAVAILABLE`. A line that passes is reduced to one
    sentence without a traceback.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._report = _SharedReport(path)
        self._clock = clock
        self._next = 0.0
        """Time before which this process need not look into the file."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the log record is written."""
        state = getattr(record, _STATE, None)
        if state == AVAILABLE[_STATE]:
            return self._end(record)
        reason = _reason(record, is_marked=state == UNAVAILABLE[_STATE])
        return reason is None or self._begin(record, reason)

    def _begin(self, record: logging.LogRecord, reason: str) -> bool:
        now = self._clock()
        if now < self._next:
            return False
        last = self._report.begin(now)
        self._next = (now if last is None else last) + WINDOW_SECONDS
        if last is not None:
            return False
        record.levelno, record.levelname = logging.WARNING, "WARNING"
        record.msg, record.args = "the database is unavailable: %s", (reason,)
        record.exc_info = record.exc_text = record.stack_info = None
        return True

    def _end(self, record: logging.LogRecord) -> bool:
        began = self._report.end()
        if began is None:
            return False
        seconds = max(0.0, self._clock() - began)
        text = "the database is available again, after %.0f s"
        record.msg, record.args = text, (seconds,)
        return True


def _reason(record: logging.LogRecord, *, is_marked: bool) -> str | None:
    """Return one line on why the database is unavailable; None for other log records."""
    arguments = record.args if isinstance(record.args, tuple) else ()
    errors = [one for one in arguments if isinstance(one, BaseException)]
    if record.exc_info and record.exc_info[1] is not None:
        errors.append(record.exc_info[1])
    for error in errors:
        found = outage_in(error)
        if found is not None:
            return (str(found) or type(found).__name__).splitlines()[0]
    return record.getMessage().splitlines()[0] if is_marked else None


class _SharedReport:
    """The last report of an outage, in a file that is locked for each access.

    If the file can't be used, for example on a full disk, the process keeps its own.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._own = _NONE

    def begin(self, now: float) -> float | None:
        """Note a report, unless there was one within WINDOW_SECONDS.

        Returns: the time of the earlier report, or None if this one is noted.
        """
        with self._locked() as file:
            last, began = self._read(file)
            # Processes read the clock before they lock the file.
            if abs(now - last) < WINDOW_SECONDS:
                return last
            self._write(file, now, now if began is None else began)
            return None

    def end(self) -> float | None:
        """Note that the outage is over.

        Returns: the time of its first report; None if no outage was reported, or if its
            end was reported already.
        """
        with self._locked() as file:
            last, began = self._read(file)
            if began is not None:
                self._write(file, last, None)
            return began

    @contextmanager
    def _locked(self) -> Iterator[int | None]:
        """Yield a descriptor of the locked file, or None if it can't be opened."""
        try:
            file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:
            yield None
            return
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield file
        finally:
            os.close(file)

    def _read(self, file: int | None) -> tuple[float, float | None]:
        """Return the times of the last report, and of the first of an open outage."""
        if file is None:
            return self._own
        try:
            last, began = map(float, os.pread(file, _LENGTH, 0).split())
        except ValueError:  # nothing has been written yet
            return _NONE
        return last, began if began >= 0 else None

    def _write(self, file: int | None, last: float, began: float | None) -> None:
        self._own = (last, began)
        if file is not None:
            text = b"%.3f %.3f" % (last, -1 if began is None else began)
            with suppress(OSError):
                os.pwrite(file, text.ljust(_LENGTH), 0)
