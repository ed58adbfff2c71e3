"""RLP, Ethereum's encoding of byte strings and of lists of them.

Decoding is strict: consensus requires that only one encoding of an item is accepted.

Source: https://ethereum.org/developers/docs/data-structures-and-encoding/rlp/
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import BinaryIO, TypeAlias

Item: TypeAlias = bytes | Sequence["Item"]
"""What can be encoded."""
Decoded: TypeAlias = "bytes | list[Decoded]"
"""A decoded item, which also is an `Item`."""

MAX_ITEM_BYTES = 16 * 1024 * 1024
"""Largest item that `read_items` reads from a stream. Blocks have at most 8 MiB since
Osaka, and messages between nodes have always had at most 10 MiB. A hostile item, such
as a list of empty lists, may take 75 times its size when decoded."""

MAX_DEPTH = 64
"""Deepest nesting that is decoded. A block with access lists needs seven levels."""

_SHORT_STRING = 0x80
_LONG_STRING = 0xB7
_SHORT_LIST = 0xC0
_LONG_LIST = 0xF7
_SHORT_LENGTHS = 56

_STRING_PREFIXES = [bytes([_SHORT_STRING + n]) for n in range(_SHORT_LENGTHS)]
_LIST_PREFIXES = [bytes([_SHORT_LIST + n]) for n in range(_SHORT_LENGTHS)]


class RlpError(ValueError):
    """Raised when bytes are not valid RLP, or not the RLP of the expected object."""


def encode(item: Item) -> bytes:
    """Return the RLP of a byte string, or of a list or tuple of items.

    Raises: TypeError for other types, including integers (see `encode_int`).
    """
    if isinstance(item, bytes):
        length = len(item)
        if length == 1 and item[0] < _SHORT_STRING:
            return item
        if length < _SHORT_LENGTHS:
            return _STRING_PREFIXES[length] + item
        return _long_prefix(_LONG_STRING, length) + item
    if isinstance(item, list | tuple):
        return wrap_list(b"".join(map(encode, item)))
    raise TypeError(f"no RLP for {type(item).__name__}")


def wrap_list(payload: bytes) -> bytes:
    """Return the RLP of a list whose items, encoded and joined, are the payload."""
    length = len(payload)
    if length < _SHORT_LENGTHS:
        return _LIST_PREFIXES[length] + payload
    return _long_prefix(_LONG_LIST, length) + payload


def _long_prefix(base: int, length: int) -> bytes:
    size = (length.bit_length() + 7) // 8
    return bytes([base + size]) + length.to_bytes(size, "big")


def encode_int(value: int) -> bytes:
    """Return a non-negative integer as big-endian bytes without leading zeros."""
    return value.to_bytes((value.bit_length() + 7) // 8, "big")


def decode_int(data: Item, size: int = 32) -> int:
    """Return the integer of a decoded item.

    size: maximum number of bytes.

    Raises: RlpError if the item is a list, too long, or has leading zeros.
    """
    if not isinstance(data, bytes):
        raise RlpError("expected an integer, found a list")
    if len(data) > size:
        raise RlpError(f"integer of {len(data)} bytes, at most {size} are allowed")
    if data[:1] == b"\x00":
        raise RlpError("integer with leading zeros")
    return int.from_bytes(data, "big")


def decode_bytes(data: Item, size: int) -> bytes:
    """Return a decoded item that must be a string of exactly `size` bytes."""
    if not isinstance(data, bytes):
        raise RlpError(f"expected {size} bytes, found a list")
    if len(data) != size:
        raise RlpError(f"expected {size} bytes, found {len(data)}")
    return data


def decode_string(data: Item) -> bytes:
    """Return a decoded item that must be a string of any size."""
    if not isinstance(data, bytes):
        raise RlpError("expected data, found a list")
    return data


def decode_list(data: Decoded) -> list[Decoded]:
    """Return a decoded item that must be a list."""
    if isinstance(data, bytes):
        raise RlpError("expected a list, found a string")
    return data


def decode(data: bytes) -> Decoded:
    """Decode exactly one item: bytes, or a list of items.

    Raises: RlpError if the bytes are not canonical RLP, or if further bytes follow.
    """
    items = _decode_payload(data, 0, len(data), MAX_DEPTH)
    if len(items) != 1:
        raise RlpError(f"expected one item, found {len(items)} items")
    return items[0]


def list_items(data: bytes) -> list[bytes]:
    """Return the items of an encoded list, each still encoded.

    Raises: RlpError if the bytes are not a list, or if an item exceeds the list. The
        contents of items are not checked.
    """
    return list(iterate_items(data))


def iterate_items(data: bytes) -> Iterator[bytes]:
    """Yield what `list_items` returns, for lists that may have too many items."""
    is_list, start, end = span(data, 0, len(data))
    if not is_list:
        raise RlpError("expected a list, found a string")
    if end != len(data):
        raise RlpError(f"{len(data) - end} bytes after the list")
    while start < end:
        _, _, stop = span(data, start, end)
        yield data[start:stop]
        start = stop


def span(data: bytes, position: int, end: int) -> tuple[bool, int, int]:
    """Return whether the item at an offset is a list, and its payload's start and end.

    end: limit of the item.
    """
    if position >= end:
        raise RlpError(f"expected an item at byte {position}, found the end")
    prefix = data[position]
    if prefix < _SHORT_STRING:
        return False, position, position + 1
    is_list = prefix >= _SHORT_LIST
    start = position + 1
    length = prefix - (_SHORT_LIST if is_list else _SHORT_STRING)
    if length >= _SHORT_LENGTHS:
        size = length - _SHORT_LENGTHS + 1
        length = _long_length(data[start : min(start + size, end)], size)
        start += size
    if start + length > end:
        raise RlpError(f"item at byte {position} ends beyond byte {end}")
    if not is_list and length == 1 and data[start] < _SHORT_STRING:
        raise RlpError(f"byte at {position} is encoded as a string")
    return is_list, start, start + length


def _long_length(digits: bytes, size: int) -> int:
    """Return the length encoded by the `size` bytes after a prefix."""
    length = int.from_bytes(digits, "big")
    if len(digits) < size:
        raise RlpError("a length is cut short")
    if digits[0] == 0 or length < _SHORT_LENGTHS:
        raise RlpError("a length is not in its shortest form")
    return length


def _decode_payload(data: bytes, position: int, end: int, depth: int) -> list[Decoded]:
    """Return the consecutive items between two offsets."""
    if not depth:
        raise RlpError(f"lists in more than {MAX_DEPTH} levels")
    items: list[Decoded] = []
    append = items.append
    while position < end:
        prefix = data[position]
        if prefix < _SHORT_STRING:
            append(data[position : position + 1])
            position += 1
        elif 0x81 < prefix <= _LONG_STRING and position + prefix - 0x7F <= end:
            # A shortcut, because most items are short strings.
            start = position + 1
            position += prefix - 0x7F
            append(data[start:position])
        else:
            is_list, start, position = span(data, position, end)
            if is_list:
                append(_decode_payload(data, start, position, depth - 1))
            else:
                append(data[start:position])
    return items


def read_items(stream: BinaryIO, limit: int = MAX_ITEM_BYTES) -> Iterator[bytes]:
    """Yield the consecutive lists of a stream, each still encoded.

    Only one list is in memory at a time. The contents of lists are not checked.

    limit: maximum size of a list in bytes.

    Raises: RlpError with the offset of a list that is truncated or too long, or of an
        item that is not a list.
    """
    offset = 0
    while prefix := stream.read(1):
        if prefix[0] < _SHORT_LIST:
            raise RlpError(f"no RLP list at byte {offset}")
        length = prefix[0] - _SHORT_LIST
        head = prefix
        if length >= _SHORT_LENGTHS:
            size = length - _SHORT_LENGTHS + 1
            digits = _read(stream, size)
            try:
                length = _long_length(digits, size)
            except RlpError as error:
                raise RlpError(f"no RLP list at byte {offset}: {error}") from error
            head += digits
        if length > limit:
            raise RlpError(
                f"list of {length} bytes at byte {offset}, at most {limit} are allowed"
            )
        payload = _read(stream, length)
        if len(payload) < length:
            raise RlpError(
                f"list at byte {offset} is cut short: expected {length} bytes, "
                f"found {len(payload)}"
            )
        yield head + payload
        offset += len(head) + length


def _read(stream: BinaryIO, size: int) -> bytes:
    """Return `size` bytes, fewer only at the end of the stream."""
    parts = []
    while size and (part := stream.read(size)):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
