"""Receipts, packed: most of one is words that every receipt has.

A packed receipt is the number of its dictionary, and a zstd frame. What a dictionary
says must never change; a better one is a second one, beside it.
"""

from __future__ import annotations

import threading

import zstandard

_ZEROS = b"0" * 512

_DICTIONARY_1 = 1

_WORDS: bytes = b"".join(
    [
        # ERC-20's Approval, and what few receipts have.
        b'"0x8c5be1e5ebec7d5bd14f71427d1e84f3dd0314c0f7b2291e5b200ac8c7c3b925","0x',
        _ZEROS[:64],
        b',"blobGasUsed":"0x20000","blobGasPrice":"0x1","root":"0x',
        b',"contractAddress":"0x","cumulativeGasUsed":"0x5208","gasUsed":"0x5208"',
        b',"status":"0x0","logsBloom":"0x' + _ZEROS + b'","logs":[]}',
        b'","topics":[],"data":"0x",@,"logIndex":"0x","removed":false},{"address":"0x',
        # A token's transfer, whole, at the end: zstd finds it first there.
        b',"contractAddress":null,"cumulativeGasUsed":"0x","gasUsed":"0x"',
        b',"status":"0x1","logsBloom":"0x' + _ZEROS[:64] + b'","logs":[{"address":"0x',
        b'","topics":['
        b'"0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef","0x',
        _ZEROS[:24] + b'","0x' + _ZEROS[:24] + b'"],"data":"0x' + _ZEROS[:48],
        b'",@,"logIndex":"0x","removed":false}]}',
    ]
)


class _Codec(threading.local):
    """A thread's own: neither part may work for two at the same time."""

    def __init__(self) -> None:
        words = zstandard.ZstdCompressionDict(
            _WORDS, dict_type=zstandard.DICT_TYPE_RAWCONTENT
        )
        words.precompute_compress(level=1)
        self.compress = zstandard.ZstdCompressor(
            level=1, dict_data=words, write_checksum=False, write_dict_id=False
        ).compress
        self.decompress = zstandard.ZstdDecompressor(dict_data=words).decompress


_codec = _Codec()


def pack(receipt: bytes) -> bytes:
    """Return the receipt, packed."""
    return bytes([_DICTIONARY_1]) + _codec.compress(receipt)


def unpack(packed: bytes) -> bytes:
    """Return what `pack` was given.

    Raises: ValueError for what `pack` can't have made.
    """
    if packed[:1] != bytes([_DICTIONARY_1]):
        raise ValueError(f"no packed receipt begins with {packed[:1]!r}")
    try:
        return _codec.decompress(memoryview(packed)[1:])
    except zstandard.ZstdError as error:
        raise ValueError(f"a packed receipt is damaged: {error}") from error
