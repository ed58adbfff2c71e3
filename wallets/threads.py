"""Django's blocking database calls, away from the event loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

from channels.db import database_sync_to_async

P = ParamSpec("P")
T = TypeVar("T")


async def in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a service or a selector in a thread of its own.

    Not in the one thread that Django's pages share: nobody waits there for a dapp.
    """
    call = database_sync_to_async(function, thread_sensitive=False)
    return cast(T, await call(*args, **kwargs))
