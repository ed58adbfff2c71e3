"""Concurrent calls, each in a thread with its own database connection."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from django.db import connection

from tests.support.waiting import PATIENCE_SECONDS, wait_until

_WAITING = """
    SELECT count(*) FROM pg_locks
    WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid))
"""


def at_once(*calls: Callable[[], Any]) -> list[Any]:
    """Make calls concurrently. Return their results or exceptions."""
    with ThreadPoolExecutor(len(calls)) as threads:
        return [
            outcome(future)
            for future in [threads.submit(_closing, call) for call in calls]
        ]


def held_up(call: Callable[[], Any]) -> Future[Any]:
    """Begin a call, and return when it waits for a lock of this thread."""
    threads = ThreadPoolExecutor(1)
    future = threads.submit(_closing, call)
    threads.shutdown(wait=False)
    wait_until(lambda: future.done() or _is_waited_for())
    assert not future.done(), "it waits for nothing"
    return future


def outcome(future: Future[Any]) -> Any:
    """Return the result or the exception of a call."""
    error = future.exception(PATIENCE_SECONDS)
    return future.result() if error is None else error


def _closing(call: Callable[[], Any]) -> Any:
    try:
        return call()
    finally:
        connection.close()


def _is_waited_for() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(_WAITING)
        row = cursor.fetchone()
    return bool(row and row[0])
