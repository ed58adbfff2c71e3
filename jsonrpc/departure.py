"""Work that is given up when nobody waits for it any more."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")

Gone = Callable[[], Awaitable[object]]
"""Waits until the caller has gone."""


class CallerGone(Exception):
    """Raised in the place of a value for which nobody waits."""


async def stay() -> None:
    """Wait for a caller who does not go."""
    await asyncio.Event().wait()


async def unless_gone(value: Awaitable[T], gone: Gone) -> T:
    """Wait for a value; give it up when the caller goes first.

    Raises: CallerGone.
    """
    answer = asyncio.ensure_future(value)
    departure = asyncio.ensure_future(gone())
    try:
        await asyncio.wait((answer, departure), return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            raise CallerGone
        return answer.result()
    finally:
        answer.cancel()
        departure.cancel()
