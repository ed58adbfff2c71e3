"""Runs blocking database calls in threads."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar, cast

from channels.db import database_sync_to_async

MAX_THREADS = 4
"""Concurrent calls; each thread has a database connection of its own."""

_threads = ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="wallet")

P = ParamSpec("P")
T = TypeVar("T")


async def in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a service or selector in one of a few threads of the wallet's own.

    Django's pages share another thread, and the event loop's default executor is used
    by other parts; a slow call of a dapp would delay both.
    """
    call = database_sync_to_async(function, thread_sensitive=False, executor=_threads)
    return cast(T, await call(*args, **kwargs))
