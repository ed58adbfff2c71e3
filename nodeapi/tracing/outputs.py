"""Results of tasks that are written in pieces, of any length."""

from __future__ import annotations

from collections.abc import Callable

from nodeapi.tracing.wire import INLINE_BYTES


class Output:
    """A result that is written in pieces: to memory, or to a file if it grows long."""

    def __init__(self, write: Callable[[bytes], object]) -> None:
        """Begin an empty result. write: writes bytes to the file."""
        self._write = write
        self._pieces: list[bytes] = []
        self._size = 0
        self._is_long = False

    def write(self, data: bytes) -> None:
        """Add bytes. Raises: the errors of the function that writes to the file."""
        self._pieces.append(data)
        self._size += len(data)
        if self._size > INLINE_BYTES:
            self._is_long = True
            self._flush()

    def result(self) -> bytes:
        """Return a short result as a whole; otherwise b"", because the file contains it."""
        if not self._is_long:
            return b"".join(self._pieces)
        self._flush()
        return b""

    def _flush(self) -> None:
        self._write(b"".join(self._pieces))
        self._pieces.clear()
        self._size = 0
