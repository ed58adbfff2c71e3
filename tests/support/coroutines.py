"""Tests that are coroutines."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any

from tests.support.waiting import PATIENCE_SECONDS


def run(scenario: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine on a new event loop, with a time limit of a few minutes."""

    async def bounded() -> None:
        async with asyncio.timeout(5 * PATIENCE_SECONDS):
            await scenario

    asyncio.run(bounded())


def scenario(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Make a test of a coroutine function."""

    @wraps(test)
    def bounded(*args: Any, **kwargs: Any) -> None:
        run(test(*args, **kwargs))

    return bounded
