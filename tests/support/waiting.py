"""Waiting for conditions, on a machine of any speed.

Speed belongs in benchmarks. A test waits until a condition holds, and fails only after
a time in which it would have held on any machine.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

Found = TypeVar("Found")

PATIENCE_SECONDS = 180.0
"""Longest time for which a test waits for one condition."""

LONGEST_PAUSE_SECONDS = 0.03
"""Longest time between two looks at a condition. Looks take processor time, many a query."""


def wait_until(condition: Callable[[], Found]) -> Found:
    """Wait until a condition is true, and return its value."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    pause = 0.005
    while not (found := condition()):
        assert time.monotonic() < deadline, "the condition does not become true"
        time.sleep(pause)
        pause = min(1.2 * pause, LONGEST_PAUSE_SECONDS)
    return found


async def until(condition: Callable[[], Awaitable[Found] | Found]) -> Found:
    """Run the event loop until a condition is true, and return its value.

    condition: may return an awaitable.
    """
    async with asyncio.timeout(PATIENCE_SECONDS):
        pause = 0.005
        while not (found := await _settled(condition())):
            await asyncio.sleep(pause)
            pause = min(1.2 * pause, LONGEST_PAUSE_SECONDS)
    return found


async def loop_turns(count: int = 100) -> None:
    """Let the event loop run all callbacks that are due, and those they schedule.

    count: iterations of the loop. No callback that waits for I/O is certain to run.
    """
    for _ in range(count):
        await asyncio.sleep(0)


async def _settled(found: Awaitable[Found] | Found) -> Found:
    return await found if isinstance(found, Awaitable) else found


async def in_time(work: Awaitable[Found]) -> Found:
    """Return the result of an awaitable. Raises: TimeoutError after PATIENCE_SECONDS."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        return await work
