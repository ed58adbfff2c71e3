"""Answers whose length is known only when they are finished."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from tempfile import SpooledTemporaryFile

from jsonrpc.stream import CHUNK_BYTES, Stream


class Spool:
    """Takes an answer piece by piece; what is long goes into a file without a name.

    The file is gone with the last who holds it, whatever happens to the process.
    memory_bytes: what is kept without a file.
    """

    def __init__(self, memory_bytes: int) -> None:
        self._memory_bytes = memory_bytes
        self._file = SpooledTemporaryFile[bytes](max_size=memory_bytes)
        self.size = 0

    def write(self, piece: bytes) -> None:
        """Add a piece."""
        self._file.write(piece)
        self.size += len(piece)

    def answer(self, advice: str) -> bytes | Stream:
        """Return the whole; the spool is at its end.

        advice: how a caller asks for less, see `Stream`.
        """
        self._file.seek(0)
        if self.size <= self._memory_bytes:
            with self._file:
                return self._file.read()
        return Stream(self.size, self._chunks(), advice)

    def close(self) -> None:
        """Give up what was written."""
        self._file.close()

    async def _chunks(self) -> AsyncGenerator[bytes, None]:
        with self._file:
            while chunk := self._file.read(CHUNK_BYTES):
                yield chunk
