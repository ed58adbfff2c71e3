"""Where blocks come from: files of concatenated RLP, as geth exports them."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from nodeapi.evm.rlp import read_items

_GZIP_MAGIC = b"\x1f\x8b"


def with_next(items: Iterable[bytes]) -> Iterator[tuple[bytes, bytes | None]]:
    """Yield each item with the one after it, None with the last.

    An error of the source comes in its place: after the items before it.
    """
    iterator = iter(items)
    item = next(iterator, None)
    while item is not None:
        following, error = None, None
        try:
            following = next(iterator, None)
        except Exception as caught:
            error = caught
        yield item, following
        if error is not None:
            raise error
        item = following


class BlockFile:
    """A file of blocks, compressed with gzip or not, read as a stream."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.size = path.stat().st_size
        """Bytes on disk."""
        self._file: BinaryIO | None = None

    @contextmanager
    def open(self) -> Iterator[Iterator[bytes]]:
        """Give the blocks, each as RLP.

        Raises: RlpError while they are read when the file is cut short or no RLP,
        EOFError and OSError (BadGzipFile) when its compression is.
        """
        with self._path.open("rb") as file:
            self._file = file
            is_gzip = file.read(2) == _GZIP_MAGIC
            file.seek(0)
            if is_gzip:
                with gzip.open(file, "rb") as unpacked:
                    yield read_items(cast(BinaryIO, unpacked))
            else:
                yield read_items(file)

    @property
    def position(self) -> int:
        """How many bytes of the file have been read."""
        return self._file.tell() if self._file and not self._file.closed else self.size
