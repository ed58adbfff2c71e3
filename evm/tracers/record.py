"""Trace records: how a transaction's execution is stored, and tracer results restored.

`calls` and `prestate` are the default results of callTracer and prestateTracer as JSON.
They have placeholders for data that is stored elsewhere: fields of the outermost call
that the transaction object contains, and code, which is named by its hash. `details`
contains the data for the other tracers (`evm.tracers.details`).

Each part is packed: a format byte, a checksum, and the payload. The checksum detects
bytes that changed in storage. Long parts can be unpacked and filled in pieces, with
memory that does not depend on their length.
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

_ZEROS = b"0" * 64

DICTIONARY: bytes = b"".join(
    [
        # Topics of ERC-20's events, and parts of revert reasons.
        bytes.fromhex(
            "8c5be1e5ebec7d5bd14f71427d1e84f3dd0314c0f7b2291e5b200ac8c7c3b925"
            "ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"
        ),
        b',"output":"0x08c379a0',
        _ZEROS,
        b',"error":"execution reverted","revertReason":"',
        b',"error":"out of gas"',
        b',"calls":[{"from":"0x',
        b'","gas":"0x","gasUsed":"0x","to":"0x","input":"0x',
        b'","type":"SELFDESTRUCT"},{"from":"0x',
        b'","value":"0x0","type":"CREATE2"},{"from":"0x',
        b'","type":"STATICCALL"},{"from":"0x',
        b'","value":"0x0","type":"DELEGATECALL"}]',
        b',"value":"0x0","type":"CALL"}]',
        b'{\x01"gasUsed":"0x","to":"0x",\x03,\x04,"type":"CREATE"}',
        b'{\x01"gasUsed":"0x5208",\x02,\x04,"type":"CALL"}',
        b'{\x01"gasUsed":"0x',
        b'",\x02,"output":"0x' + _ZEROS[:63] + b'1"',
        b',\x04,"type":"CALL"}',
        b'{"0x0000000000000000000000000000000000000000":{"balance":"0x0","nonce":1},',
        b'"},"0x","nonce":2},"0x","nonce":',
        b'":{"balance":"0x0","code":"0x\x05","codeHash":"0x',
        b'","nonce":1,"storage":{"0x',
        b'":"0x' + _ZEROS + b'","0x',
        b'":"0x' + _ZEROS,
        b'"}},"0x',
    ]
)


RECORD_LIMIT_BYTES = 64 * 2**20
"""Size limit of the data of one transaction's call frames. A transaction with 200,000
calls of a megabyte of input must not exhaust the importer's memory."""

TOO_LARGE = b"\x00"
"""Stored in place of a packed part that exceeds the limit."""
_RAW, _DICTIONARY_1, _SUMMED = 1, 2, 12
"""Format bytes of payloads.

_RAW: uncompressed. Used before storage, and by rows without checksums of old versions.
_DICTIONARY_1: a zstd frame made with this dictionary.
_SUMMED: a CRC-32 and another format.

A single changed bit does not turn one of these, or TOO_LARGE, into another one."""

_SUM_BYTES = 4

_WORTH_COMPRESSING = 64
"""Least size in bytes to compress. A zstd frame alone takes nine bytes."""
_DETAILS_WORTH_COMPRESSING = 256
"""Least size in bytes of details to compress. They consist of hashes and amounts, and
short ones have no patterns."""
_SHORT = 4096
"""Payloads below this number of bytes are compressed with a dictionary and parameters
of their own."""
CHUNK_BYTES = 65_536

# Placeholders: bytes that never occur in JSON.
FROM_AND_GAS, TO_AND_INPUT, INPUT, VALUE = b"\x01", b"\x02", b"\x03", b"\x04"
CODE = b"\x05"

_CODE_PLACEHOLDER = re.compile(rb'\x05","codeHash":"0x([0-9a-f]{64})')
_HASH_BEHIND_CODE = slice(len(b'","codeHash":"0x'), len(b'","codeHash":"0x') + 64)
_PLACEHOLDERS = re.compile(rb"[\x01-\x04]")

_MEMBERS = re.compile(
    rb'("from":"[^"]*"),("to":[^,]*),"nonce":"[^"]*",("gas":"[^"]*")'
    rb',"gasPrice":[^v]*("value":"[^"]*"),("input":"[^"]*")'
)
"""Fields that the outermost call shares with `nodeapi.documents.blocks.transaction_document`.

`[^v]*` skips the members between gas price and value, none of which contains a v. It is
faster than a lazy match."""


class RecordTooLarge(ValueError):
    """Raised when a trace record was not stored because it exceeds the size limit."""


class RecordDamaged(ValueError):
    """Raised when a stored trace record fails its checksum or is malformed."""


class TransactionRecord(NamedTuple):
    """The trace record of one transaction, packed, and the sizes of the results."""

    calls: bytes
    prestate: bytes
    details: bytes
    calls_size: int
    """Size in bytes of the complete callTracer result, or 0 if it was too large."""
    prestate_size: int
    """Size in bytes of the complete prestateTracer result, or 0 if it was too large."""


RecordColumns = tuple[
    Sequence[bytes], Sequence[bytes], Sequence[bytes], Sequence[int], Sequence[int]
]
"""Fields of many records: one sequence for each field, in the order of the records."""

NOTHING_RECORDED = TransactionRecord(TOO_LARGE, TOO_LARGE, TOO_LARGE, 0, 0)


@dataclass(frozen=True, slots=True)
class CodeHole:
    """A placeholder for the hex digits of a contract's code."""

    code_hash: bytes


# Packing


def _dictionary() -> zstandard.ZstdCompressionDict:
    return zstandard.ZstdCompressionDict(
        DICTIONARY, dict_type=zstandard.DICT_TYPE_RAWCONTENT
    )


class _Codec(threading.local):
    """Compressor and decompressor of a thread. They are expensive to create."""

    def __init__(self) -> None:
        dictionary = _dictionary()
        self.compressor = zstandard.ZstdCompressor(
            level=3, dict_data=dictionary, write_checksum=True, write_dict_id=False
        )
        # A compression level allocates tables that are larger than most records.
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
    """Pack a payload for storage."""
    size = len(payload)
    if size < _WORTH_COMPRESSING:
        return _summed(payload)
    if size < _SHORT:
        return b"\x02" + _codec.short_compressor.compress(payload)
    return b"\x02" + _codec.compressor.compress(payload)


def _summed(payload: bytes) -> bytes:
    return b"\x0c%b%b" % (zlib.crc32(payload).to_bytes(_SUM_BYTES, "big"), payload)


def hold(payload: bytes) -> bytes:
    """Pack a payload, but leave compression of short ones to `compress_records`."""
    return b"\x01" + payload if len(payload) < _SHORT else pack(payload)


def compress_records(records: Sequence[TransactionRecord]) -> RecordColumns:
    """Compress the payloads of `hold`, add checksums, and return the records' columns.

    All payloads are compressed together without the GIL, so the importer can execute
    the next blocks at the same time.
    """
    if not records:
        return [], [], [], (), ()
    calls, prestate, details, calls_sizes, prestate_sizes = zip(*records, strict=True)
    # Transfers of one token have equal calls, except for the placeholders' values.
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
    """Return the payload of packed bytes.

    Raises: RecordTooLarge; RecordDamaged if the bytes are not a result of `pack`.
    """
    kind = packed[0] if packed else None
    if kind == _DICTIONARY_1:
        try:
            payload = _codec.decompressor.decompress(memoryview(packed)[1:])
        except (zstandard.ZstdError, MemoryError) as error:
            # MemoryError: the frame declares a huge content size.
            raise RecordDamaged(f"a record is damaged: {error}") from error
        if not payload:
            # The library skips the checksum of a frame that declares no content.
            raise RecordDamaged("a record is damaged: it is empty")
        return payload
    if kind == _SUMMED:
        payload = packed[1 + _SUM_BYTES :]
        _check_sum(packed[1 : 1 + _SUM_BYTES], zlib.crc32(payload))
        return payload
    _check_kind(kind, packed == TOO_LARGE)
    return packed[1:]


def unpack_pieces(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the payload of packed bytes in pieces.

    chunks: the packed bytes, split anywhere.

    Raises: as `unpack`. Damage may be detected only after the last piece.
    """
    chunks = iter(chunks)
    first = next((chunk for chunk in chunks if chunk), b"")
    kind, rest = first[0] if first else None, first[1:]
    if kind == _DICTIONARY_1:
        yield from _inflated_pieces(itertools.chain((rest,), chunks))
        return
    if kind == _SUMMED:
        # Short: only payloads that are not worth compressing have this form.
        yield unpack(first + b"".join(chunks))
        return
    _check_kind(kind, not rest)
    yield rest
    yield from chunks


def _inflated_pieces(chunks: Iterable[bytes]) -> Iterator[bytes]:
    # Not the thread's decompressor, because several streams may be open at once.
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
    """Yield the decompressed bytes of a chunk, in small steps.

    Four compressed bytes may expand to 128 KiB. The steps limit a piece to 2 MiB.
    """
    step = 64
    for start in range(0, len(chunk), step):
        if inflate.eof:
            raise RecordDamaged("a record is damaged: there are bytes after its end")
        piece = inflate.decompress(chunk[start : start + step])
        if piece:
            yield piece


def _check_sum(stored: bytes, found: int) -> None:
    if stored != found.to_bytes(_SUM_BYTES, "big"):
        raise RecordDamaged("a record is damaged: its checksum differs")


def _check_kind(kind: int | None, is_all: bool) -> None:
    """Raise an error if packed bytes of this kind have no payload.

    is_all: whether the kind is the last of the packed bytes.
    """
    if kind == TOO_LARGE[0] and is_all:
        raise RecordTooLarge("what the transaction did was too much to be recorded")
    if kind != _RAW:
        raise RecordDamaged(f"a record has an unknown format: {kind}")


# Filling


def fill_calls(packed: bytes, document: bytes) -> bytes:
    """Return the callTracer result as JSON.

    document: the transaction object (`nodeapi.documents.blocks`).

    Raises: as `unpack`.
    """
    return _filled(unpack(packed), document)


def fill_all_calls(
    packed: Iterable[bytes], documents: Iterable[bytes]
) -> Iterator[bytes]:
    """Yield the callTracer results of many transactions as JSON.

    Most simple transfers have equal records, which are unpacked only once.
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
    """Yield the callTracer result in pieces of at most `CHUNK_BYTES`.

    chunks: the packed bytes, split at any offsets.
    document: the transaction object (`nodeapi.documents.blocks`).
    """
    placeholders = (FROM_AND_GAS, TO_AND_INPUT, INPUT, VALUE)
    members = dict(zip(placeholders, _members(document), strict=True))
    return _cut(
        _PLACEHOLDERS.sub(lambda found: members[found.group()], piece)
        for piece in unpack_pieces(chunks)
    )


def _members(document: bytes) -> tuple[bytes, bytes, bytes, bytes]:
    """Return the values for the placeholders of `calls`, in the placeholders' order."""
    found = _MEMBERS.search(document)
    if found is None:
        raise ValueError("this is no transaction object")
    sender, to, gas, value, data = found.groups()
    return b"%s,%s," % (sender, gas), b"%s,%s" % (to, data), data, value


def call_document(
    sender: bytes, to: bytes | None, gas: int, value: int, data: bytes
) -> bytes:
    """Return the part of a transaction object that fills a call's record.

    to: None for a creation. gas: the limit. value: wei.
    """
    receiver = "null" if to is None else f'"0x{to.hex()}"'
    return (
        f'{{"from":"0x{sender.hex()}","to":{receiver},"nonce":"0x0","gas":"{gas:#x}"'
        f',"gasPrice":"0x0","value":"{value:#x}","input":"0x{data.hex()}"}}'
    ).encode()


def code_hashes(text: bytes) -> set[bytes]:
    """Return the hashes of the code placeholders in one or more unpacked `prestate`."""
    found = {part[_HASH_BEHIND_CODE] for part in text.split(CODE)[1:]}
    return {bytes.fromhex(digits.decode()) for digits in found}


def fill_codes(text: bytes, codes: Mapping[bytes, bytes]) -> bytes:
    """Replace the code placeholders in one or more prestateTracer results.

    text: unpacked `prestate`, with any text around. codes: hash → code, for all
        placeholders.
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


def stream_prestate(chunks: Iterable[bytes]) -> Iterator[bytes | CodeHole]:
    """Yield the prestateTracer result in pieces, with a CodeHole for each code.

    The caller replaces these by the code's hex digits, because it knows how to read
    them without blocking.
    """
    rest = b""
    for piece in unpack_pieces(chunks):
        rest += piece
        while found := _CODE_PLACEHOLDER.search(rest):
            yield from _cut([rest[: found.start()]])
            yield CodeHole(bytes.fromhex(found[1].decode()))
            rest = rest[found.start() + 1 :]
        # Keep an incomplete placeholder until the next piece.
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
