"""Long request bodies, parsed and decoded one at a time, in a thread.

Decoding the arguments in a body of 5 MB takes up to a third of a second. In a thread, other
requests are answered between its steps. Parsing JSON holds Python's lock: 5 MB of empty
arrays take a tenth of a second or more. If many such bodies were parsed at once, no other
request would be answered until then, and the process's heartbeat would stop for so long
that its supervisor replaces it.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from typing import TypeVar

from jsonrpc.later import Later

LONG_BYTES = 2**14
"""A longer body may take more than a millisecond to parse."""

T = TypeVar("T")


class LongBodies:
    """Prepares one long body at a time."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()

    def prepare(self, prepare: Callable[[], T]) -> Later[T]:
        """Return what a function makes of a long body, after earlier ones.

        prepare: is called in a thread.
        """
        return Later.from_coroutine(self._prepare_in_turn(prepare))

    async def _prepare_in_turn(self, prepare: Callable[[], T]) -> T:
        async with self._turn:
            return await asyncio.to_thread(_without_collections, prepare)


def _without_collections(prepare: Callable[[], T]) -> T:
    """Prepare a body with garbage collection disabled.

    Collections would traverse all parsed objects repeatedly, which takes three times as
    long as parsing. The objects are freed by their reference counts.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return prepare()
    finally:
        if was_enabled:
            gc.enable()
