"""Packed receipts: compressed with a dictionary of the words that all receipts share.

A packed receipt consists of the number of its dictionary, the number of its
placeholders (see `nodeapi.documents.receipts`), and a zstd frame with its uncompressed size and
checksum. The text of a dictionary must never change. An improved one has to be added as
a second dictionary.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from struct import Struct

import zstandard

HOLE = b"@"
"""Placeholder for a log's position in the chain. This character occurs nowhere else in
the JSON."""

_PIECE_BYTES = 2**14
"""Size of decompressed pieces. Placeholders are at least a hundred bytes apart, so a
piece is at most 2**16 bytes after they are filled."""

_PREFIX = Struct("!BI")

_ZEROS = b"0" * 512

_DICTIONARY_1 = 1

_WORDS: bytes = b"".join(
    [
        # ERC-20's Approval, and members that few receipts have.
        b'"0x8c5be1e5ebec7d5bd14f71427d1e84f3dd0314c0f7b2291e5b200ac8c7c3b925","0x',
        _ZEROS[:64],
        b',"blobGasUsed":"0x20000","blobGasPrice":"0x1","root":"0x',
        b',"contractAddress":"0x","cumulativeGasUsed":"0x5208","gasUsed":"0x5208"',
        b',"status":"0x0","logsBloom":"0x' + _ZEROS + b'","logs":[]}',
        b'","topics":[],"data":"0x",@,"logIndex":"0x","removed":false},{"address":"0x',
        # A complete token transfer is at the end, where zstd finds it first.
        b',"contractAddress":null,"cumulativeGasUsed":"0x","gasUsed":"0x"',
        b',"status":"0x1","logsBloom":"0x' + _ZEROS[:64] + b'","logs":[{"address":"0x',
        b'","topics":['
        b'"0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef","0x',
        _ZEROS[:24] + b'","0x' + _ZEROS[:24] + b'"],"data":"0x' + _ZEROS[:48],
        b'",@,"logIndex":"0x","removed":false}]}',
    ]
)


_words = zstandard.ZstdCompressionDict(_WORDS, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
_words.precompute_compress(level=1)


class _Codec(threading.local):
    """Compressor and decompressor of one thread. Threads can't share them."""

    def __init__(self) -> None:
        self.compress = zstandard.ZstdCompressor(
            level=1, dict_data=_words, write_checksum=True, write_dict_id=False
        ).compress
        self.decompress = zstandard.ZstdDecompressor(dict_data=_words).decompress


_codec = _Codec()


def pack(receipt: bytes) -> bytes:
    """Pack a receipt. receipt: JSON without the members of its transaction."""
    prefix = _PREFIX.pack(_DICTIONARY_1, receipt.count(HOLE))
    return prefix + _codec.compress(receipt)


def unpack(packed: bytes) -> bytes:
    """Return the JSON from a result of `pack`.

    Raises: ValueError if the packed receipt is malformed.
    """
    try:
        receipt = _codec.decompress(_frame(packed))
    # A MemoryError means that the frame declares a huge size.
    except (zstandard.ZstdError, MemoryError) as error:
        raise ValueError(f"a packed receipt is damaged: {error}") from error
    # The library does not verify a frame that declares no content.
    if not receipt:
        raise ValueError("a packed receipt is damaged: nothing is in it")
    return receipt


def unpack_beginning(packed: bytes) -> bytes:
    """Return the first 16 KiB of a packed receipt's JSON, or all if it is shorter.

    Raises: ValueError if the packed receipt is malformed.
    """
    size, _ = measure(packed)
    return unpack(packed) if size <= _PIECE_BYTES else next(unpack_pieces(packed))


def unpack_pieces(packed: bytes) -> Iterator[bytes]:
    """Yield the JSON of a packed receipt in pieces of at most 16 KiB.

    Raises: ValueError if the packed receipt is malformed.
    """
    missing, _ = measure(packed)
    decompressor = zstandard.ZstdDecompressor(dict_data=_words)
    try:
        for piece in decompressor.read_to_iter(_frame(packed), write_size=_PIECE_BYTES):
            missing -= len(piece)
            yield piece
    except zstandard.ZstdError as error:
        raise ValueError(f"a packed receipt is damaged: {error}") from error
    if missing:
        raise ValueError(f"a packed receipt lacks {missing} bytes")


def measure(packed: bytes) -> tuple[int, int]:
    """Return the size of the unpacked JSON, and the number of its placeholders."""
    frame = _frame(packed)
    try:
        size = zstandard.frame_content_size(frame)
    except zstandard.ZstdError as error:
        raise ValueError(f"a packed receipt is damaged: {error}") from error
    return size, _PREFIX.unpack_from(packed)[1]


def log_count(beginning: bytes) -> int:
    """Return the number of logs of a packed receipt. beginning: its first five bytes."""
    _, count = _PREFIX.unpack_from(beginning)
    return int(count)


def _frame(packed: bytes) -> memoryview:
    if len(packed) < _PREFIX.size or packed[0] != _DICTIONARY_1:
        raise ValueError(f"no packed receipt begins with {packed[:5]!r}")
    return memoryview(packed)[_PREFIX.size :]
