"""Sources of blocks: files of concatenated RLP, as exported by geth."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from evm.blocks import without_access_list
from evm.rlp import read_items

_GZIP_MAGIC = b"\x1f\x8b"


def with_next(items: Iterable[bytes]) -> Iterator[tuple[bytes, bytes | None]]:
    """Yield each item with the item after it, or None for the last one.

    An exception of `items` is raised after all preceding items were yielded.
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
    """A file of blocks, optionally compressed with gzip, read as a stream."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.size = path.stat().st_size
        """Size on disk in bytes."""
        self._file: BinaryIO | None = None

    @contextmanager
    def open(self) -> Iterator[Iterator[bytes]]:
        """Yield an iterator over the blocks, each as RLP.

        Access lists of blocks are compared with the headers, and left out.

        The iterator raises InvalidBlock if a block has another access list than its
        header says, RlpError if the file is truncated or not RLP, and EOFError or
        OSError (BadGzipFile) if the compressed data is truncated or invalid.
        """
        with self._path.open("rb") as file:
            self._file = file
            is_gzip = file.read(2) == _GZIP_MAGIC
            file.seek(0)
            if is_gzip:
                with gzip.open(file, "rb") as unpacked:
                    yield map(without_access_list, read_items(cast(BinaryIO, unpacked)))
            else:
                yield map(without_access_list, read_items(file))

    @property
    def position(self) -> int:
        """Number of bytes of the file that have been read."""
        return self._file.tell() if self._file and not self._file.closed else self.size
