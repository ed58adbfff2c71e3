"""Turns of connections whose input takes long to parse.

A client can fill a read with thousands of tiny chunks or frames. No callback of the event
loop parses more than a slice of them. The connection then stops reading and waits for its
turn to go on. One connection has its turn in each cycle of the loop. Therefore the delay
of other requests does not grow with the number of such connections.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

TURNS = "portcullis.turns"
"""Key of the process's turns in the state of an ASGI scope."""


class Turns:
    """The connections of a process that wait for their turns, in the order of arrival."""

    def __init__(self) -> None:
        self._waiting: deque[Callable[[], None]] = deque()

    def wait(self, proceed: Callable[[], None]) -> None:
        """Call a function in a later cycle of the event loop, one function per cycle."""
        self._waiting.append(proceed)
        if len(self._waiting) == 1:
            asyncio.get_running_loop().call_soon(self._next)

    def _next(self) -> None:
        proceed = self._waiting[0]
        try:
            proceed()
        finally:
            self._waiting.popleft()
            if self._waiting:
                asyncio.get_running_loop().call_soon(self._next)
