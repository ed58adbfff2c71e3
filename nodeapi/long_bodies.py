"""Long request bodies, parsed one at a time, with turns of the event loop in between.

Parsing blocks the event loop: 5 MB of empty arrays take half a second. If many such
bodies are complete in the same turn, the loop answers no other request until all are
parsed, and the process's heartbeat stops for so long that its supervisor replaces it.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable

from jsonrpc.answers import Answer
from jsonrpc.later import Later

LONG_BYTES = 2**14
"""A longer body may take more than a millisecond to parse."""

Respond = Callable[[], Later[Answer]]
"""Parses a body and starts its calls."""


class LongBodies:
    """Parses at most one long body in each iteration of the event loop."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()

    def respond(self, respond: Respond) -> Later[Answer]:
        """Return the answer to a long body, which is parsed after earlier ones."""
        return Later.from_coroutine(self._respond_in_turn(respond))

    async def _respond_in_turn(self, respond: Respond) -> Answer:
        async with self._turn:
            await asyncio.sleep(0)  # at least one turn of the loop after the last body
            answer = _without_collections(respond)
        return await answer


def _without_collections(respond: Respond) -> Later[Answer]:
    """Parse a body with garbage collection disabled.

    Collections would traverse all parsed objects repeatedly, which takes three times as
    long as parsing. The objects are freed by their reference counts.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return respond()
    finally:
        if was_enabled:
            gc.enable()
