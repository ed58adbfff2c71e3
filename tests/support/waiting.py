"""Waiting for what is to come about, on a machine of any speed.

How quick something is belongs into benchmarks. A test waits until it is there, and
fails only when that takes so long that it will never be.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

Found = TypeVar("Found")

PATIENCE_SECONDS = 60.0
"""No test waits longer for a single thing."""


def wait_until(condition: Callable[[], Found]) -> Found:
    """Wait until a condition holds; returns what it says then."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (found := condition()):
        assert time.monotonic() < deadline, "it does not come about"
        time.sleep(0.01)
    return found


async def until(condition: Callable[[], Awaitable[Found] | Found]) -> Found:
    """Let the event loop run until a condition holds; returns what it says then.

    condition: may have to be awaited.
    """
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not (found := await _settled(condition())):
            await asyncio.sleep(0.005)
    return found


async def _settled(found: Awaitable[Found] | Found) -> Found:
    return await found if isinstance(found, Awaitable) else found


async def in_time(work: Awaitable[Found]) -> Found:
    """Return what something that is about to happen brings."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        return await work
