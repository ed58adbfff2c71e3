"""Decoding of ABI-encoded data.

Offsets in the data could make a decoder read the same bytes again and again, so that a
short input has billions of values. No compiler writes such data: a decoder therefore
reads at most as many bytes as the data has, and fails beyond.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from abi.types import WORD, Array, Elementary, Parameter, Struct, Type

MAX_VALUES = 1000
"""Maximum number of decoded values. Further items of arrays are only counted."""


class Malformed(ValueError):
    """Raised for data that do not fit their types."""


@dataclass(frozen=True, slots=True)
class Argument:
    """A decoded value with its name and type."""

    name: str
    """Empty for items of arrays, and if the definition has none."""
    type: str
    """The canonical type, such as `uint256` or `(address,bytes)[]`."""
    value: Value
    length: int = 0
    """Number of items of an array. `value` may have fewer."""
    is_indexed: bool = False
    is_hash: bool = False
    """Whether the value is the Keccak hash of the argument: an indexed text or array."""
    inner: InnerCall | None = None
    """The call that a value of type bytes encodes; see `abi.batches`."""


@dataclass(frozen=True, slots=True)
class InnerCall:
    """A decoded call inside the arguments of another one."""

    signature: str
    arguments: tuple[Argument, ...]


Value: TypeAlias = int | bool | str | bytes | tuple[Argument, ...]
"""A number, a truth value, a text, bytes (an address has 20), or members or items."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """The decoded values of a call, a result, an error or a log."""

    arguments: tuple[Argument, ...]
    is_complete: bool
    """Whether no items of arrays were omitted."""
    trailing: int
    """Number of bytes after the encoded values; 0 if the values are incomplete."""


def decode(
    parameters: Sequence[Parameter], data: bytes, most: int = MAX_VALUES
) -> Decoded:
    """Decode the encoding of parameters. most: maximum number of values.

    Raises: Malformed.
    """
    reader = _Reader(data, most)
    arguments = reader.members(parameters, 0)
    is_complete = not reader.has_omitted
    trailing = max(0, len(data) - reader.end) if is_complete else 0
    return Decoded(arguments, is_complete, trailing)


def decode_word(kind: Elementary, word: bytes) -> int | bool | bytes:
    """Return the value of a static type that a word of 32 bytes encodes.

    Raises: Malformed if the word is not a value of the type.
    """
    number = int.from_bytes(word)
    name = kind.name
    if name == "address":
        if number >> 160:
            raise Malformed("more than 20 bytes of an address")
        return word[12:]
    if name == "bool":
        if number > 1:
            raise Malformed("neither true nor false")
        return number == 1
    if name.startswith("bytes") or name == "function":
        size = 24 if name == "function" else int(name[5:])
        if any(word[size:]):
            raise Malformed(f"more than {size} bytes")
        return word[:size]
    digits = name.lstrip("uintfxed").partition("x")[0]
    if name.startswith("u"):
        if number >> int(digits):
            raise Malformed(f"more than {digits} bits")
        return number
    signed = int.from_bytes(word, signed=True)
    if not -(1 << int(digits) - 1) <= signed < 1 << int(digits) - 1:
        raise Malformed(f"more than {digits} bits")
    return signed


class _Reader:
    """Reads data, and counts bytes and values."""

    def __init__(self, data: bytes, most: int) -> None:
        self.end = 0
        """The position after the last byte that was read, with its padding."""
        self.has_omitted = False
        self._data = data
        self._unread = len(data)
        self._values_left = most

    def members(
        self, parameters: Sequence[Parameter], base: int
    ) -> tuple[Argument, ...]:
        """Decode the members of a tuple. base: position at which its encoding begins."""
        found = []
        head = base
        for parameter in parameters:
            kind = parameter.type
            found.append(self._member(parameter.name, kind, head, base))
            head += kind.head_size
        return tuple(found)

    def _member(self, name: str, kind: Type, head: int, base: int) -> Argument:
        """Decode a member or an item.

        head: position of its head; base: position from which offsets count.
        """
        at = base + self._number(head) if kind.is_dynamic else head
        self._values_left -= 1
        match kind:
            case Struct(members):
                return Argument(name, kind.name, self.members(members, at))
            case Array():
                items, length = self._items(kind, at)
                return Argument(name, kind.name, items, length)
        if kind.is_dynamic:
            return Argument(name, kind.name, self._bytes(kind, at))
        return Argument(name, kind.name, decode_word(kind, self._read(at, WORD)))

    def _items(self, kind: Array, at: int) -> tuple[tuple[Argument, ...], int]:
        """Return the items of an array as far as they are decoded, and their number."""
        length = kind.length
        if length is None:
            length = self._number(at)
            at += WORD
        size = kind.item.head_size
        if length * size > max(0, len(self._data) - at):
            raise Malformed("an array is longer than the data")
        items = []
        for index in range(length):
            if self._values_left <= 0:
                self.has_omitted = True
                break
            items.append(self._member("", kind.item, at + index * size, at))
        return tuple(items), length

    def _bytes(self, kind: Elementary, at: int) -> str | bytes:
        size = self._number(at)
        value = self._read(at + WORD, size)
        self.end = max(self.end, at + WORD + -(-size // WORD) * WORD)
        return value.decode(errors="replace") if kind.name == "string" else value

    def _number(self, at: int) -> int:
        return int.from_bytes(self._read(at, WORD))

    def _read(self, at: int, size: int) -> bytes:
        """Return bytes of the data. Raises: Malformed if the data end before."""
        if at + size > len(self._data):
            raise Malformed("the data ends too early")
        self._unread -= size
        if self._unread < 0:
            raise Malformed("parts of the data overlap")
        self.end = max(self.end, at + size)
        return self._data[at : at + size]
