"""Files without a name, in which answers wait for their readers."""

from __future__ import annotations

import os
import sys
import tempfile
import weakref
from collections.abc import AsyncGenerator
from pathlib import Path

from jsonrpc.stream import CHUNK_BYTES, Stream

BUFFER_BYTES = 2**20
"""As much is collected before it is written."""


class SpoolFull(Exception):
    """An answer longer than allowed."""


class SpoolWriter:
    """The worker's end of a file: bounded, and buffered."""

    def __init__(self, descriptor: int, limit: int) -> None:
        """Write to an open file, which stays its owner's.

        limit: bytes.
        """
        self._descriptor = descriptor
        self._limit = limit
        self._pieces: list[bytes] = []
        self._pending = 0
        self.size = 0
        """Bytes given so far."""

    def write(self, data: bytes) -> None:
        """Add bytes. Raises: SpoolFull."""
        self.size += len(data)
        if self.size > self._limit:
            raise SpoolFull
        self._pieces.append(data)
        self._pending += len(data)
        if self._pending >= BUFFER_BYTES:
            self.flush()

    def flush(self) -> None:
        """Have everything in the file."""
        view = memoryview(b"".join(self._pieces))
        self._pieces.clear()
        self._pending = 0
        while view:
            view = view[os.write(self._descriptor, view) :]


class Spool:
    """A file without a name; it is gone when nobody refers to this any more."""

    def __init__(self, folder: Path | None) -> None:
        """Open an empty file; folder: None for the system's."""
        with tempfile.TemporaryFile(dir=folder) as file:
            self.descriptor = os.dup(file.fileno())
        weakref.finalize(self, os.close, self.descriptor)
        self.size = 0
        """Bytes of the finished answer."""

    def stream(self, advice: str) -> Stream:
        """Return the answer for one of its readers."""
        return Stream(self.size, self._chunks(), advice)

    async def _chunks(self) -> AsyncGenerator[bytes, None]:
        for offset in range(0, self.size, CHUNK_BYTES):
            length = min(CHUNK_BYTES, self.size - offset)
            yield os.pread(self.descriptor, length, offset)


class SpoolCount:
    """How much waits in files for readers, all of a process together.

    limit: bytes beyond which there is room for no more.
    """

    def __init__(self, limit: int = sys.maxsize) -> None:
        self.limit = limit
        self.bytes = 0

    @property
    def is_full(self) -> bool:
        """Whether there is more than may be."""
        return self.bytes > self.limit

    def add(self, spool: object, size: int) -> None:
        """Count bytes of a file until what holds it is gone."""
        self.bytes += size
        weakref.finalize(spool, self._remove, size)

    def _remove(self, size: int) -> None:
        self.bytes -= size
