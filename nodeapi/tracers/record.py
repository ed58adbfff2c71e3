"""What is kept of a transaction's execution, and how it becomes an answer again.

`calls` and `prestate` are the default answers of callTracer and prestateTracer as JSON,
with holes where something goes that is stored elsewhere already: members of the
outermost call that the transaction object has, code that its hash names. `details` is
what the other answers need besides (`nodeapi.tracers.details`).

Each is packed: one byte that tells how, and the payload, with a checksum: bytes that
changed where they were stored are an error, and never an answer. Long ones can be
unpacked and filled piece by piece, in memory that does not depend on their length.
"""

from __future__ import annotations

import itertools
import re
import threading
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import zstandard

from nodeapi.tracers.dictionary import DICTIONARY

RECORD_LIMIT_BYTES = 64 * 2**20
"""Of the data of one transaction's frames; a block whose transaction calls 200 000
times with a megabyte of input must not take the importer's memory."""

TOO_LARGE = b"\x00"
"""A packed record of which more would have had to be recorded than the limit."""
_RAW, _DICTIONARY_1, _SUMMED = 1, 2, 12
"""How a payload is packed: as it is (until it is stored, and what was stored before
there were checksums), as a zstd frame made with that dictionary, or behind its CRC-32.

No single bit makes one of another, nor something too large of what is not.
"""

_SUM_BYTES = 4

_WORTH_COMPRESSING = 64
"""Bytes. A zstd frame alone takes nine."""
_DETAILS_WORTH_COMPRESSING = 256
"""The same of details, which are hashes and amounts and have no pattern if short."""
_SHORT = 4096
"""Bytes. Shorter payloads are compressed in their own way."""
CHUNK_BYTES = 65_536

# Holes: bytes that JSON never has.
FROM_AND_GAS, TO_AND_INPUT, INPUT, VALUE = b"\x01", b"\x02", b"\x03", b"\x04"
CODE = b"\x05"

_CODE_HOLE = re.compile(rb'\x05","codeHash":"0x([0-9a-f]{64})')
_HASH_BEHIND_CODE = slice(len(b'","codeHash":"0x'), len(b'","codeHash":"0x') + 64)
_HOLES = re.compile(rb"[\x01-\x04]")

_MEMBERS = re.compile(
    rb'("from":"[^"]*"),("to":[^,]*),"nonce":"[^"]*",("gas":"[^"]*")'
    rb',"gasPrice":[^v]*("value":"[^"]*"),("input":"[^"]*")'
)
"""What the outermost call shares with `nodeapi.documents.transaction_document`.

No member between the gas price and the value has a v, which is sooner said to the
engine than tried at each byte.
"""


class RecordTooLarge(ValueError):
    """Raised when what a transaction did was too much to be recorded."""


class RecordDamaged(ValueError):
    """Raised when a stored record is not what was stored."""


class TransactionRecord(NamedTuple):
    """What one transaction's execution left, packed, and the answers' sizes."""

    calls: bytes
    prestate: bytes
    details: bytes
    calls_size: int
    """Bytes of the callTracer answer, its holes filled; 0 when it was too large."""
    prestate_size: int
    """The same of prestateTracer's."""


RecordColumns = tuple[
    Sequence[bytes], Sequence[bytes], Sequence[bytes], Sequence[int], Sequence[int]
]
"""The fields of many records, each field's values in the records' order."""

NOTHING_RECORDED = TransactionRecord(TOO_LARGE, TOO_LARGE, TOO_LARGE, 0, 0)


@dataclass(frozen=True, slots=True)
class CodeHole:
    """Stands where the hex digits of a contract's code go."""

    code_hash: bytes


# Packing


def _dictionary() -> zstandard.ZstdCompressionDict:
    return zstandard.ZstdCompressionDict(
        DICTIONARY, dict_type=zstandard.DICT_TYPE_RAWCONTENT
    )


class _Codec(threading.local):
    """A thread's compressor and decompressor, which are costly to make."""

    def __init__(self) -> None:
        dictionary = _dictionary()
        self.compressor = zstandard.ZstdCompressor(
            level=3, dict_data=dictionary, write_checksum=True, write_dict_id=False
        )
        # Most records are shorter than the tables that a level brings along.
        self.short_compressor = zstandard.ZstdCompressor(
            compression_params=zstandard.ZstdCompressionParameters(
                strategy=zstandard.STRATEGY_FAST,
                window_log=_SHORT.bit_length(),
                hash_log=10,
                chain_log=10,
                search_log=1,
                min_match=4,
                write_checksum=True,
                write_dict_id=False,
            ),
            dict_data=dictionary,
        )
        self.decompressor = zstandard.ZstdDecompressor(dict_data=dictionary)


_codec = _Codec()


def pack(payload: bytes) -> bytes:
    """Return bytes as they are stored."""
    size = len(payload)
    if size < _WORTH_COMPRESSING:
        return _summed(payload)
    if size < _SHORT:
        return b"\x02" + _codec.short_compressor.compress(payload)
    return b"\x02" + _codec.compressor.compress(payload)


def _summed(payload: bytes) -> bytes:
    return b"\x0c%b%b" % (zlib.crc32(payload).to_bytes(_SUM_BYTES, "big"), payload)


def hold(payload: bytes) -> bytes:
    """Return bytes packed, but as they are if they are short: see `compress_records`."""
    return b"\x01" + payload if len(payload) < _SHORT else pack(payload)


def compress_records(records: Sequence[TransactionRecord]) -> RecordColumns:
    """Compress what was held, or give it its checksum; return the records' columns.

    All at once, and without the interpreter's lock: whoever stores the records does
    this while the next blocks are executed.
    """
    if not records:
        return [], [], [], (), ()
    calls, prestate, details, calls_sizes, prestate_sizes = zip(*records, strict=True)
    # Transfers of a token leave the same calls, but for the holes.
    distinct = set(calls)
    packed = dict(zip(distinct, _compressed(distinct, _WORTH_COMPRESSING), strict=True))
    return (
        [packed[one] for one in calls],
        _compressed(prestate, _WORTH_COMPRESSING),
        _compressed(details, _DETAILS_WORTH_COMPRESSING),
        calls_sizes,
        prestate_sizes,
    )


def _compressed(held: Iterable[bytes], worth: int) -> list[bytes]:
    records, places = list(held), []
    for place, record in enumerate(records):
        if record[0] != _RAW:
            continue
        if len(record) > worth:
            places.append(place)
        else:
            records[place] = _summed(record[1:])
    if places:
        payloads: list[Any] = [records[place][1:] for place in places]
        frames: Any = _codec.short_compressor.multi_compress_to_buffer(
            payloads, threads=1
        )
        for place, frame in zip(places, frames, strict=True):
            records[place] = b"\x02" + frame.tobytes()
    return records


def unpack(packed: bytes) -> bytes:
    """Return what `pack` was given.

    Raises: RecordTooLarge; RecordDamaged for what `pack` can't have made.
    """
    kind = packed[0] if packed else None
    if kind == _DICTIONARY_1:
        try:
            payload = _codec.decompressor.decompress(memoryview(packed)[1:])
        except (zstandard.ZstdError, MemoryError) as error:  # the latter: of its size
            raise RecordDamaged(f"a record is damaged: {error}") from error
        if not payload:  # a frame that says so is believed, and not looked into
            raise RecordDamaged("a record is damaged: nothing is in it")
        return payload
    if kind == _SUMMED:
        payload = packed[1 + _SUM_BYTES :]
        _check_sum(packed[1 : 1 + _SUM_BYTES], zlib.crc32(payload))
        return payload
    _check_kind(kind, packed == TOO_LARGE)
    return packed[1:]


def unpack_pieces(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the same piece by piece; chunks: the packed bytes, cut anywhere.

    What is damaged is found at the end, if not before.
    """
    chunks = iter(chunks)
    first = next((chunk for chunk in chunks if chunk), b"")
    kind, rest = first[0] if first else None, first[1:]
    if kind == _DICTIONARY_1:
        yield from _inflated_pieces(itertools.chain((rest,), chunks))
        return
    if kind == _SUMMED:
        # No longer than what is not worth compressing.
        yield unpack(first + b"".join(chunks))
        return
    _check_kind(kind, not rest)
    yield rest
    yield from chunks


def _inflated_pieces(chunks: Iterable[bytes]) -> Iterator[bytes]:
    # A decompressor of its own: other pieces are unpacked before this is at its end.
    decompressor = zstandard.ZstdDecompressor(dict_data=_dictionary())
    inflate = decompressor.decompressobj(write_size=CHUNK_BYTES)
    try:
        for chunk in chunks:
            yield from _inflated(inflate, chunk)
    except (zstandard.ZstdError, MemoryError) as error:
        raise RecordDamaged(f"a record is damaged: {error}") from error
    if not inflate.eof:
        raise RecordDamaged("a record is damaged: its end is missing")


def _inflated(inflate: zstandard.ZstdDecompressionObj, chunk: bytes) -> Iterator[bytes]:
    """Yield what a chunk holds, by small steps.

    Four bytes of a frame may stand for 128 KiB, so that a step gives two MiB at most.
    """
    step = 64
    for start in range(0, len(chunk), step):
        if inflate.eof:
            raise RecordDamaged("a record is damaged: it goes on behind its end")
        piece = inflate.decompress(chunk[start : start + step])
        if piece:
            yield piece


def _check_sum(stored: bytes, found: int) -> None:
    if stored != found.to_bytes(_SUM_BYTES, "big"):
        raise RecordDamaged("a record is damaged: its checksum is another one")


def _check_kind(kind: int | None, is_all: bool) -> None:
    """Refuse what has no payload; is_all: whether nothing follows."""
    if kind == TOO_LARGE[0] and is_all:
        raise RecordTooLarge("what the transaction did was too much to be recorded")
    if kind != _RAW:
        raise RecordDamaged(f"a record is packed in an unknown way: {kind}")


# Filling


def fill_calls(packed: bytes, document: bytes) -> bytes:
    """Return the callTracer answer as JSON.

    document: the transaction object (`nodeapi.documents`). Raises: as `unpack`.
    """
    return _filled(unpack(packed), document)


def fill_all_calls(
    packed: Iterable[bytes], documents: Iterable[bytes]
) -> Iterator[bytes]:
    """Yield the same for many transactions.

    Transfers leave the same record, but for the holes; it is unpacked once.
    """
    texts: dict[bytes, bytes] = {}
    for one, document in zip(packed, documents, strict=True):
        text = texts.get(one)
        if text is None:
            text = texts[one] = unpack(one)
        yield _filled(text, document)


def _filled(text: bytes, document: bytes) -> bytes:
    caller, callee, data, value = _members(document)
    text = text.replace(FROM_AND_GAS, caller, 1).replace(TO_AND_INPUT, callee, 1)
    return text.replace(INPUT, data, 1).replace(VALUE, value, 1)


def stream_calls(chunks: Iterable[bytes], document: bytes) -> Iterator[bytes]:
    """Yield the same in pieces of at most `CHUNK_BYTES`, of packed bytes in chunks."""
    holes = (FROM_AND_GAS, TO_AND_INPUT, INPUT, VALUE)
    members = dict(zip(holes, _members(document), strict=True))
    return _cut(
        _HOLES.sub(lambda hole: members[hole.group()], piece)
        for piece in unpack_pieces(chunks)
    )


def _members(document: bytes) -> tuple[bytes, bytes, bytes, bytes]:
    """Return what goes into the holes of `calls`, in the order of their signs."""
    found = _MEMBERS.search(document)
    if found is None:
        raise ValueError("this is no transaction object")
    sender, to, gas, value, data = found.groups()
    return b"%s,%s," % (sender, gas), b"%s,%s" % (to, data), data, value


def code_hashes(text: bytes) -> set[bytes]:
    """Return the hashes of the code that one or more unpacked `prestate` leave out."""
    found = {part[_HASH_BEHIND_CODE] for part in text.split(CODE)[1:]}
    return {bytes.fromhex(digits.decode()) for digits in found}


def fill_codes(text: bytes, codes: Mapping[bytes, bytes]) -> bytes:
    """Return one or more prestateTracer answers as JSON.

    text: `prestate` unpacked, whatever stands around it. codes: all that it leaves
    out, by their hashes.
    """
    digits = {
        code_hash.hex().encode(): code.hex().encode()
        for code_hash, code in codes.items()
    }
    parts = text.split(CODE)
    filled = parts[:1]
    for part in parts[1:]:
        filled += digits[part[_HASH_BEHIND_CODE]], part
    return b"".join(filled)


def fill_prestate(packed: bytes, codes: Mapping[bytes, bytes]) -> bytes:
    """Return the prestateTracer answer as JSON; codes: by their hashes, all of them."""
    return fill_codes(unpack(packed), codes)


def stream_prestate(chunks: Iterable[bytes]) -> Iterator[bytes | CodeHole]:
    """Yield the same in pieces, and a CodeHole wherever code's hex digits go.

    The digits themselves are for the caller to fetch: only it knows how to wait.
    """
    rest = b""
    for piece in unpack_pieces(chunks):
        rest += piece
        while hole := _CODE_HOLE.search(rest):
            yield from _cut([rest[: hole.start()]])
            yield CodeHole(bytes.fromhex(hole[1].decode()))
            rest = rest[hole.start() + 1 :]
        # A hole that is not there as a whole yet waits for the next piece.
        end = rest.find(CODE)
        if end < 0:
            end = len(rest)
        yield from _cut([rest[:end]])
        rest = rest[end:]
    yield from _cut([rest])


def _cut(pieces: Iterable[bytes]) -> Iterator[bytes]:
    for piece in pieces:
        for start in range(0, len(piece), CHUNK_BYTES):
            yield piece[start : start + CHUNK_BYTES]
