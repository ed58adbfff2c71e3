"""Answers whose length is known only when they are finished."""

from __future__ import annotations

import weakref
from collections.abc import AsyncGenerator
from tempfile import SpooledTemporaryFile

from jsonrpc.errors import ServiceUnavailable
from jsonrpc.stream import CHUNK_BYTES, Stream
from nodeapi.tracing.spool import SpoolCount

_COUNTED_BYTES = 2**20
"""So much of an answer is counted at once: its last part may go without."""


class Spool:
    """Takes an answer piece by piece; what is long goes into a file without a name.

    The file is gone with the last who holds it, whatever happens to the process.
    memory_bytes: what is kept without a file.
    count: of all that is in files.
    """

    def __init__(self, memory_bytes: int, count: SpoolCount) -> None:
        self._memory_bytes = memory_bytes
        self._count = count
        self._counted = 0
        self._file = SpooledTemporaryFile[bytes](max_size=memory_bytes)
        weakref.finalize(self, self._file.close)  # of an answer that nobody began
        self.size = 0

    def write(self, piece: bytes) -> None:
        """Add a piece. Raises: ServiceUnavailable when too much is in files."""
        size = self.size + len(piece)
        if size > self._memory_bytes and size - self._counted >= _COUNTED_BYTES:
            if self._count.is_full:
                raise ServiceUnavailable
            self._count.add(self, size - self._counted)
            self._counted = size
        self._file.write(piece)
        self.size = size

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
