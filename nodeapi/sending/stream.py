"""A reader of RLP that reports errors in the words of geth's decoder.

`evm.rlp` is faster, and is used for blocks. This reader knows the Go type of what it
reads, because geth's error texts name it:
`rlp: input string too long for uint64, decoding into (types.LegacyTx).Nonce`.

Source: go-ethereum v1.17.10, rlp/decode.go
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")

BYTE = "Byte"
STRING = "String"
LIST = "List"

_SHORT_STRING = 0x80
_LONG_STRING = 0xB7
_SHORT_LIST = 0xC0
_LONG_LIST = 0xF7
_SHORT_LENGTHS = 56

_LEADING_ZEROS = "non-canonical integer (leading zero bytes)"
_SIZE = "non-canonical size information"
_NO_LIST = "expected input list"
_NO_STRING = "expected input string or byte"
_TOO_LONG = "input string too long"
_TOO_SHORT = "input string too short"

TOO_LARGE_FOR_LIST = "rlp: element is larger than containing list"
TOO_LARGE_FOR_INPUT = "rlp: value size exceeds available input length"
MORE_THAN_ONE = "rlp: input contains more than one value"


class RlpFault(ValueError):
    """Raised when bytes are not the RLP of the wanted object. `str` is geth's text.

    go_type: the Go type that was being read; "" for errors that name no type.
    path: the members and indices that contain the value, the innermost first.
    """

    def __init__(self, text: str, go_type: str = "") -> None:
        super().__init__(text)
        self.text = text
        self.go_type = go_type
        self.path: list[str] = []

    def inside(self, place: str) -> RlpFault:
        """Return the error with one more member or index that contains the value."""
        self.path.append(place)
        return self

    def __str__(self) -> str:
        if not self.go_type:
            return self.text
        place = "".join(reversed(self.path))
        where = f", decoding into {place}" if place else ""
        return f"rlp: {self.text} for {self.go_type}{where}"


class EndOfList(Exception):
    """Raised when a value is read at the end of a list."""


class _NonCanonicalSize(Exception):
    """Raised when a length is not in its shortest form. The caller adds the Go type."""


@dataclass(slots=True)
class Header:
    """A value's kind and its payload's offsets. A single byte is its own payload."""

    kind: str
    start: int
    end: int


class Stream:
    """Reads consecutive values between two offsets.

    is_list: whether the values are the items of a list. If so, reading past the last item
        raises EndOfList.
    """

    __slots__ = ("_data", "_is_list", "end", "position")

    def __init__(
        self, data: bytes, position: int, end: int, *, is_list: bool = False
    ) -> None:
        self._data = data
        self._is_list = is_list
        self.position = position
        self.end = end

    def _peek(self) -> Header:
        """Return the header of the next value."""
        position, end = self.position, self.end
        if position == end:
            if self._is_list:
                raise EndOfList
            raise RlpFault("EOF")
        prefix = self._data[position]
        if prefix < _SHORT_STRING:
            return Header(BYTE, position, position + 1)
        kind = LIST if prefix >= _SHORT_LIST else STRING
        size = prefix - (_SHORT_LIST if kind is LIST else _SHORT_STRING)
        start = position + 1
        if size >= _SHORT_LENGTHS:
            digits = size - _SHORT_LENGTHS + 1
            self._require(start + digits)
            if digits > 1 and not self._data[start]:
                raise _NonCanonicalSize
            size = int.from_bytes(self._data[start : start + digits], "big")
            if size < _SHORT_LENGTHS:
                raise _NonCanonicalSize
            start += digits
        # geth compares with the rest of the list before the header was read. A value
        # that ends a little later is reported when it is taken.
        if self._is_list and size > end - position:
            raise RlpFault(TOO_LARGE_FOR_LIST)
        if start + size > len(self._data):
            raise RlpFault(TOO_LARGE_FOR_INPUT)
        return Header(kind, start, start + size)

    def _require(self, end: int) -> None:
        """Raise RlpFault if the bytes up to an offset do not belong to this stream."""
        if end > self.end:
            raise RlpFault(TOO_LARGE_FOR_LIST if self._is_list else TOO_LARGE_FOR_INPUT)

    def _header(self, go_type: str) -> Header:
        """Return the header of the next value. go_type: its type, for errors."""
        try:
            return self._peek()
        except _NonCanonicalSize:
            raise RlpFault(_SIZE, go_type) from None

    def string(self, go_type: str) -> bytes:
        """Read a string of any length."""
        header = self._header(go_type)
        if header.kind is LIST:
            raise RlpFault(_NO_STRING, go_type)
        payload = self._take(header)
        if header.kind is STRING and len(payload) == 1 and payload[0] < _SHORT_STRING:
            raise RlpFault(_SIZE, go_type)
        return payload

    def fixed(self, size: int, go_type: str) -> bytes:
        """Read a string of a fixed length above 1."""
        try:
            header = self._peek()
        except _NonCanonicalSize:
            raise RlpFault(f"rlp: {_SIZE}") from None
        if header.kind is LIST:
            raise RlpFault(_NO_STRING, go_type)
        length = header.end - header.start
        if length != size:
            raise RlpFault(_TOO_LONG if length > size else _TOO_SHORT, go_type)
        return self._take(header)

    def uint(self, bits: int) -> int:
        """Read an unsigned integer of a Go type such as uint64."""
        go_type = f"uint{bits}"
        header = self._header(go_type)
        if header.kind is LIST:
            raise RlpFault(_NO_STRING, go_type)
        if header.end - header.start > bits // 8:
            raise RlpFault(_TOO_LONG, go_type)
        return self._integer(header, go_type)

    def big_int(self) -> int:
        """Read an unsigned integer of any length."""
        header = self._header("*big.Int")
        if header.kind is LIST:
            raise RlpFault(_NO_STRING, "*big.Int")
        return self._integer(header, "*big.Int")

    def uint256(self) -> int:
        """Read an unsigned integer of at most 32 bytes."""
        go_type = "*uint256.Int"
        header = self._header(go_type)
        if header.kind is LIST:
            raise RlpFault(_NO_STRING, go_type)
        if header.end - header.start > 32:
            raise RlpFault("rlp: value too large for uint256")
        return self._integer(header, go_type)

    def _integer(self, header: Header, go_type: str) -> int:
        payload = self._take(header)
        if header.kind is STRING and len(payload) == 1 and payload[0] < _SHORT_STRING:
            raise RlpFault(_SIZE, go_type)
        if payload[:1] == b"\0":
            raise RlpFault(_LEADING_ZEROS, go_type)
        return int.from_bytes(payload, "big")

    def optional_fixed(self, size: int, go_type: str) -> bytes:
        """Read a string of a fixed length, or an empty one."""
        header = self._header(f"*{go_type}")
        if header.kind is not BYTE and header.start == header.end:
            if header.kind is LIST:
                raise RlpFault(
                    "wrong kind of empty value (got List, want String)", f"*{go_type}"
                )
            return self._take(header)
        return self.fixed(size, go_type)

    def enter(self, go_type: str) -> Stream:
        """Enter a list. Returns a reader of its items."""
        header = self._header(go_type)
        if header.kind is not LIST:
            raise RlpFault(_NO_LIST, go_type)
        self._require(header.end)
        self.position = header.end
        return Stream(self._data, header.start, header.end, is_list=True)

    def items(self, go_type: str, read: Callable[[Stream], T]) -> list[T]:
        """Read a list whose items have the same type."""
        stream = self.enter(go_type)
        found: list[T] = []
        while True:
            try:
                found.append(read(stream))
            except EndOfList:
                return found
            except RlpFault as fault:
                raise fault.inside(f"[{len(found)}]") from None

    def struct(self, go_type: str, members: Members) -> list[Any]:
        """Read a list with one item for each member of a struct."""
        stream = self.enter(go_type)
        values = []
        for name, read in members:
            try:
                values.append(read(stream))
            except EndOfList:
                raise RlpFault("too few elements", go_type) from None
            except RlpFault as fault:
                raise fault.inside(f".{name}") from None
        if stream.position != stream.end:
            raise RlpFault("input list has too many elements", go_type)
        return values

    def _take(self, header: Header) -> bytes:
        """Return a value's payload, and advance to the next value."""
        self._require(header.end)
        self.position = header.end
        return self._data[header.start : header.end]


Members = tuple[tuple[str, Callable[[Stream], Any]], ...]
"""Pairs of a struct member's Go name and the function that reads it."""


def decode_struct(data: bytes, start: int, go_type: str, members: Members) -> list[Any]:
    """Decode a struct that extends from an offset to the end of the bytes.

    Raises: RlpFault.
    """
    stream = Stream(data, start, len(data))
    try:
        values = stream.struct(go_type, members)
    except RlpFault as fault:
        if fault.path:
            fault.inside(f"({go_type})")
        raise
    if stream.position != stream.end:
        raise RlpFault(MORE_THAN_ONE)
    return values
