"""Spooling of results whose length is not known in advance."""

from __future__ import annotations

import weakref
from collections.abc import AsyncGenerator, Hashable
from tempfile import SpooledTemporaryFile

from jsonrpc.stream import CHUNK_BYTES, Stream
from nodeapi.tracing.spool import SpoolCount

_COUNTED_BYTES = 2**20
"""Bytes that are counted at a time. The last part of a result may be uncounted."""


class Spool:
    """Collects a result in memory, and in an unnamed file if it is long.

    The file is deleted with its last reference, even if the process is killed.

    memory_bytes: largest result without a file.
    count: counts the bytes of all files.
    owner: the account that the result counts for.
    """

    def __init__(
        self, memory_bytes: int, count: SpoolCount, owner: Hashable = None
    ) -> None:
        self._memory_bytes = memory_bytes
        self._count = count
        self._owner = owner
        self._counted = 0
        self.file = SpooledTemporaryFile[bytes](max_size=memory_bytes)
        weakref.finalize(self, self.file.close)  # if the answer was never started
        self.size = 0

    def write(self, piece: bytes) -> None:
        """Add a piece.

        Raises: TooMuchUnread if the owner's results fill their share;
            ServiceUnavailable if all results together fill the spool.
        """
        size = self.size + len(piece)
        if size > self._memory_bytes and size - self._counted >= _COUNTED_BYTES:
            self._count.check(self._owner)
            self._count.add_part(self, self._owner, size - self._counted)
            self._counted = size
        self.file.write(piece)
        self.size = size

    def answer(self, advice: str) -> bytes | Stream:
        """Return the complete result. The spool can't be used afterwards.

        advice: how a caller can request less, see `Stream`.
        """
        self.file.seek(0)
        if self.size <= self._memory_bytes:
            with self.file:
                return self.file.read()
        return Stream(self.size, self._chunks(), advice)

    def close(self) -> None:
        """Discard the content."""
        self.file.close()

    async def _chunks(self) -> AsyncGenerator[bytes, None]:
        with self.file:
            while chunk := self.file.read(CHUNK_BYTES):
                yield chunk
