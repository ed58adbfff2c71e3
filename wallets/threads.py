"""Django's blocking database calls, away from the event loop."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar, cast

from channels.db import database_sync_to_async

MAX_THREADS = 4
"""Calls at the same time, each with a connection of its own to the database."""

_threads = ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="wallet")

P = ParamSpec("P")
T = TypeVar("T")


async def in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a service or a selector in one of a few threads.

    Not in the one that Django's pages share, nor in those of the event loop, where
    others would wait for a dapp.
    """
    call = database_sync_to_async(function, thread_sensitive=False, executor=_threads)
    return cast(T, await call(*args, **kwargs))
