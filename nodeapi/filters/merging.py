"""Merging arrays of logs into one."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

from nodeapi.results.answers import Answer
from nodeapi.results.spool import Spool


class MergedArray:
    """Writes the elements of JSON arrays to a spool, as one array.

    The arrays must have no white space around their brackets.
    """

    def __init__(self, spool: Spool) -> None:
        self._spool = spool
        self._separator = b"["

    async def add(self, array: Answer) -> None:
        """Write the elements of an array.

        Raises: the errors of `Spool.write`.
        """
        if isinstance(array, bytes):
            self._write_members(array[1:-1])
            return
        async with aclosing(array):
            held = b""  # bytes that are not written, such as the closing bracket
            is_opened = is_begun = False
            async for chunk in array:
                held += chunk
                if not is_opened:
                    held = held[1:]
                    is_opened = True
                if is_begun:
                    self._spool.write(held[:-1])
                elif len(held) > 1:
                    self._write_members(held[:-1])
                    is_begun = True
                held = held[-1:]
                await asyncio.sleep(0)  # other tasks may run between

    def close(self) -> None:
        """Write the end of the array."""
        self._spool.write(b"]" if self._separator == b"," else b"[]")

    def _write_members(self, members: bytes) -> None:
        """Write elements after those before, or the beginning of the first of them."""
        if members:
            self._spool.write(self._separator + members)
            self._separator = b","
