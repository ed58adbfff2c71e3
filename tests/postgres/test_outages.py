"""An outage of the database causes one log line a minute, and one at its end."""

from __future__ import annotations

import logging
from pathlib import Path

import psycopg
import pytest
from django.db import OperationalError

from postgres.errors import ConnectionFailed, TimedOut, Unavailable
from postgres.outages import (
    AVAILABLE,
    UNAVAILABLE,
    WINDOW_SECONDS,
    OutageLimit,
    outage_in,
)

SECRET_FREE = "connection to server failed: No such file or directory"


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Process:
    """The log of one process: a logger with a handler that has the filter."""

    def __init__(self, name: str, path: Path, clock: Clock) -> None:
        self.lines: list[str] = []
        self.records: list[logging.LogRecord] = []
        handler = logging.Handler()
        handler.emit = self._emit  # type: ignore[method-assign]
        handler.addFilter(OutageLimit(path, clock))
        self.log = logging.Logger(name)
        self.log.addHandler(handler)

    def _emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)
        self.lines.append(record.getMessage())


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def processes(tmp_path: Path, clock: Clock) -> tuple[Process, Process]:
    path = tmp_path / "outage"
    return Process("one", path, clock), Process("two", path, clock)


def connection_error() -> psycopg.OperationalError:
    return psycopg.OperationalError(f"{SECRET_FREE}\n\tIs the server running?")


def fail(process: Process) -> None:
    process.log.warning("something waits: %s", connection_error())


def test_one_process_reports_for_all_once_a_minute(processes, clock: Clock) -> None:
    one, two = processes
    for _ in range(3):
        fail(one)
        fail(two)
    assert one.lines == [f"the database is unavailable: {SECRET_FREE}"]
    assert two.lines == []
    clock.now += WINDOW_SECONDS - 1
    fail(two)
    assert two.lines == []
    clock.now += 1
    fail(two)
    fail(one)
    assert len(two.lines) == len(one.lines) == 1


def test_end_is_reported_once_with_the_duration(processes, clock: Clock) -> None:
    one, two = processes
    fail(one)
    clock.now += 75
    fail(two)
    one.log.warning("connected", extra=AVAILABLE)
    two.log.warning("connected", extra=AVAILABLE)
    assert one.lines[1:] == ["the database is available again, after 75 s"]
    assert len(two.lines) == 1


def test_end_of_an_outage_that_was_not_reported_is_not_reported(processes) -> None:
    one, two = processes
    fail(one)
    one.log.warning("connected", extra=AVAILABLE)
    fail(two)  # it noticed the same outage later
    two.log.warning("connected", extra=AVAILABLE)
    assert two.lines == []


def test_traceback_of_an_outage_is_one_line(processes) -> None:
    one, two = processes
    try:
        try:
            raise connection_error()
        except psycopg.Error as error:
            raise OperationalError(str(error)) from error
    except OperationalError:
        one.log.exception("Internal Server Error: /")
    (record,) = one.records
    assert record.exc_info is None
    assert record.levelno == logging.WARNING
    two.log.warning("query failed: 57P01 shutting down", extra=UNAVAILABLE)
    assert two.lines == []


def test_other_lines_are_left_alone(processes) -> None:
    one, _ = processes
    fail(one)
    one.log.error("a request crashed: %s", ValueError("x"))
    one.log.info("plain")
    one.log.warning("too slow: %s", TimedOut("canceling statement"))
    assert one.lines[1:] == [
        "a request crashed: x",
        "plain",
        "too slow: canceling statement",
    ]


def test_process_reports_by_itself_if_the_file_can_not_be_opened(
    tmp_path: Path, clock: Clock
) -> None:
    process = Process("one", tmp_path / "missing" / "file", clock)
    fail(process)
    fail(process)
    process.log.warning("connected", extra=AVAILABLE)
    process.log.warning("connected", extra=AVAILABLE)
    assert len(process.lines) == 2


@pytest.mark.parametrize(
    ("error", "is_outage"),
    [
        (connection_error(), True),
        (psycopg.InterfaceError("the connection is closed"), True),
        (psycopg.errors.AdminShutdown("terminating connection"), True),
        (psycopg.errors.TooManyConnections("sorry, too many clients already"), True),
        (ConnectionFailed("down"), True),
        (Unavailable("the code is missing"), False),
        (TimedOut("canceling statement"), False),
        (psycopg.errors.QueryCanceled("canceling statement"), False),
        (psycopg.errors.DeadlockDetected("deadlock detected"), False),
        (psycopg.errors.UniqueViolation("duplicate key"), False),
        (ValueError("x"), False),
        (None, False),
    ],
)
def test_outage_is_a_failed_connection_not_a_failed_statement(error, is_outage) -> None:
    assert (outage_in(error) is not None) == is_outage
