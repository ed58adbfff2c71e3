"""Cancellation of slow operations whose caller has disconnected."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from jsonrpc.later import Later

T = TypeVar("T")

Gone = Callable[[], Awaitable[object]]
"""Returns a new awaitable that completes when the caller has disconnected. It is cancelled
when the operation that it could have cancelled is complete."""


class CallerGone(Exception):
    """Raised in place of a result when the caller has disconnected."""


async def stay() -> None:
    """Wait forever. This is the `Gone` function of a caller that never disconnects."""
    await asyncio.Event().wait()


def unless_gone(later: Later[T], gone: Gone) -> Later[T]:
    """Abort a pending operation with CallerGone when the caller disconnects.

    Returns the same object.
    """
    if not later.is_done:
        departure = asyncio.ensure_future(gone())

        def abort(departure: asyncio.Future[Any]) -> None:
            if not departure.cancelled():
                departure.exception()  # else asyncio logs it as never retrieved
                later.abort(CallerGone())

        departure.add_done_callback(abort)
        later.when_done(lambda _: departure.cancel())
    return later
