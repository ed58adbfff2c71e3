"""Unnamed files with long results, which wait for their readers."""

from __future__ import annotations

import os
import sys
import tempfile
import weakref
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Hashable
from pathlib import Path
from tempfile import SpooledTemporaryFile

from jsonrpc.errors import ServiceUnavailable
from jsonrpc.stream import CHUNK_BYTES, Stream
from nodeapi.errors.execution import TooMuchUnread

BUFFER_BYTES = 2**20
"""Bytes collected in memory before they are written."""

_COUNTED_BYTES = 2**20
"""Bytes that are counted at a time. The last part of a result may be uncounted."""


class SpoolFull(Exception):
    """Raised when a result exceeds its size limit."""


class SpoolWriter:
    """The worker's writer of a result file, buffered and with a size limit."""

    def __init__(self, descriptor: int, limit: int) -> None:
        """Write to an open file, which the caller closes. limit: bytes."""
        self._descriptor = descriptor
        self._limit = limit
        self._pieces: list[bytes] = []
        self._pending = 0
        self.size = 0
        """Bytes written so far."""

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
        """Write buffered bytes to the file."""
        view = memoryview(b"".join(self._pieces))
        self._pieces.clear()
        self._pending = 0
        while view:
            view = view[os.write(self._descriptor, view) :]


class ResultFile:
    """An unnamed file, which is closed when this object is no longer referenced."""

    def __init__(self, folder: Path | None) -> None:
        """Open an empty file. folder: None for the system's temporary folder."""
        with tempfile.TemporaryFile(dir=folder) as file:
            self.descriptor = os.dup(file.fileno())
        weakref.finalize(self, os.close, self.descriptor)
        self.size = 0
        """Bytes of the complete result."""

    def stream(self, advice: str, *holds: Hold) -> Stream:
        """Return the result for one of its readers.

        holds: released when the result was read or dropped.
        """
        return Stream(self.size, self._chunks(holds), advice)

    async def _chunks(self, holds: tuple[Hold, ...]) -> AsyncGenerator[bytes, None]:
        try:
            for offset in range(0, self.size, CHUNK_BYTES):
                length = min(CHUNK_BYTES, self.size - offset)
                yield os.pread(self.descriptor, length, offset)
        finally:
            for hold in holds:
                hold.release()


class Hold:
    """A count that is undone once, by `release` or when this object is deleted."""

    def __init__(self, undo: Callable[[], object]) -> None:
        """Keep a function that undoes the count. It must not refer to this object."""
        self.release = weakref.finalize(self, undo)


class SpoolCount:
    """Counts the unread bytes in files of a process.

    limit: bytes above which no further result is accepted.
    owner_limit: the same for the results of one owner, a customer's account. If several
        owners read one file, it counts fully for each, once.
    """

    def __init__(
        self, limit: int = sys.maxsize, owner_limit: int = sys.maxsize
    ) -> None:
        self.limit = limit
        self.owner_limit = owner_limit
        self.bytes = 0
        self.owners: Counter[Hashable] = Counter()
        self.readers: Counter[tuple[int, Hashable]] = Counter()

    def check(self, owner: Hashable) -> None:
        """Raise if an owner may not have another result.

        Raises: TooMuchUnread when the owner's own results fill their share;
            ServiceUnavailable when all results together fill the spool.
        """
        self.check_share(owner)
        if self.bytes > self.limit:
            raise ServiceUnavailable

    def check_share(self, owner: Hashable) -> None:
        """Raise TooMuchUnread if an owner's results fill their share."""
        if self.owners.get(owner, 0) > self.owner_limit:
            raise TooMuchUnread(self.owner_limit)

    def add(self, spool: object, size: int) -> None:
        """Count a file's bytes until `spool` is no longer referenced."""
        self.bytes += size
        weakref.finalize(spool, self._remove, size)

    def add_reader(self, spool: ResultFile, owner: Hashable) -> Hold:
        """Count a file for an owner who reads it, until the hold is released."""
        reader, size = (id(spool), owner), spool.size
        self.readers[reader] += 1
        if self.readers[reader] == 1:
            self.owners[owner] += size

        def undo() -> None:
            self.readers[reader] -= 1
            if not self.readers[reader]:
                del self.readers[reader]
                self._subtract(owner, size)

        return Hold(undo)

    def add_part(self, spool: object, owner: Hashable, size: int) -> None:
        """Count more bytes of a growing file, for the process and for its owner.

        They count until `spool` is no longer referenced.
        """
        self.add(spool, size)
        self.owners[owner] += size
        weakref.finalize(spool, self._subtract, owner, size)

    def _remove(self, size: int) -> None:
        self.bytes -= size

    def _subtract(self, owner: Hashable, size: int) -> None:
        self.owners[owner] -= size
        if not self.owners[owner]:
            del self.owners[owner]


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
