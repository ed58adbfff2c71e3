"""Types of ABI-encoded values."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

WORD = 32
"""Bytes of a word."""

MAX_DEPTH = 8
"""Nested tuples and arrays in a type."""

_ALIASES = {"uint": "uint256", "int": "int256", "byte": "bytes1"}

_SIZED = re.compile(r"(uint|int|bytes)([1-9][0-9]{0,2})")
_FIXED = re.compile(r"u?fixed([1-9][0-9]{0,2})x([0-9]{1,2})")
_PLAIN = frozenset({"address", "bool", "function"})
_DYNAMIC = frozenset({"bytes", "string"})


class InvalidType(ValueError):
    """Raised for a type that the ABI does not have, or that is nested too deeply."""


@dataclass(frozen=True, slots=True)
class Elementary:
    """A type without parts, such as `uint256`, `bytes4` or `string`."""

    name: str

    @property
    def is_dynamic(self) -> bool:
        """Whether its head contains an offset, because the size of the value varies."""
        return self.name in _DYNAMIC

    @property
    def head_size(self) -> int:
        """Bytes of its head: of the value, or of the offset of a dynamic value."""
        return WORD

    @property
    def text(self) -> str:
        """The type as definitions write it."""
        return self.name


@dataclass(frozen=True, slots=True)
class Parameter:
    """A named value of a function, event, error or tuple. name: may be empty."""

    name: str
    type: Type
    is_indexed: bool = False

    @property
    def text(self) -> str:
        """The parameter as definitions write it: `address indexed to`."""
        indexed = " indexed" if self.is_indexed else ""
        return f"{self.type.text}{indexed} {self.name}".rstrip()


@dataclass(frozen=True, slots=True)
class Struct:
    """A tuple, which is a struct in Solidity."""

    members: tuple[Parameter, ...]

    @property
    def name(self) -> str:
        """The canonical name, as it is part of signatures: `(address,uint256)`."""
        return f"({','.join(member.type.name for member in self.members)})"

    @property
    def is_dynamic(self) -> bool:
        """Whether its head contains an offset, because the size of the value varies."""
        return any(member.type.is_dynamic for member in self.members)

    @property
    def head_size(self) -> int:
        """Bytes of its head: of the value, or of the offset of a dynamic value."""
        if self.is_dynamic:
            return WORD
        return sum(member.type.head_size for member in self.members)

    @property
    def text(self) -> str:
        """The type as definitions write it, with the names of its members."""
        return f"({', '.join(member.text for member in self.members)})"


@dataclass(frozen=True, slots=True)
class Array:
    """An array. length: None if the number of items is part of the encoding."""

    item: Type
    length: int | None = None

    @property
    def name(self) -> str:
        """The canonical name, such as `uint256[]` or `(address,bytes)[2]`."""
        return f"{self.item.name}{self._brackets}"

    @property
    def is_dynamic(self) -> bool:
        """Whether its head contains an offset, because the size of the value varies."""
        return self.length is None or self.item.is_dynamic

    @property
    def head_size(self) -> int:
        """Bytes of its head: of the value, or of the offset of a dynamic value."""
        if self.length is None or self.is_dynamic:
            return WORD
        return self.length * self.item.head_size

    @property
    def text(self) -> str:
        """The type as definitions write it."""
        return f"{self.item.text}{self._brackets}"

    @property
    def _brackets(self) -> str:
        return "[]" if self.length is None else f"[{self.length}]"


Type: TypeAlias = Elementary | Struct | Array


def elementary(name: str) -> Elementary:
    """Return an elementary type by its name. Raises: InvalidType."""
    name = _ALIASES.get(name, name)
    if name in _PLAIN or name in _DYNAMIC:
        return Elementary(name)
    found = _SIZED.fullmatch(name)
    if found is not None:
        size = int(found[2])
        if size <= WORD if found[1] == "bytes" else _fits(size):
            return Elementary(name)
    found = _FIXED.fullmatch(name)
    if found is not None and _fits(int(found[1])) and int(found[2]) <= 80:
        return Elementary(name)
    raise InvalidType(f"{name[:40]!r} is not an ABI type")


def _fits(bits: int) -> bool:
    """Return whether a number type may have this size."""
    return bits <= 8 * WORD and bits % 8 == 0


def struct(members: tuple[Parameter, ...]) -> Struct:
    """Return a tuple type. Raises: InvalidType if it has no members."""
    if not members:
        raise InvalidType("a tuple has at least one member")
    return Struct(members)


def arrays(item: Type, lengths: list[int | None]) -> Type:
    """Return arrays of a type. lengths: from the inside out, None for a dynamic array.

    Raises: InvalidType for an array without items, or nested too deeply.
    """
    for length in lengths:
        if length == 0:
            raise InvalidType("an array has at least one item")
        item = Array(item, length)
    if depth(item) > MAX_DEPTH:
        raise InvalidType(f"a type has at most {MAX_DEPTH} levels")
    return item


def depth(kind: Type) -> int:
    """Return the number of nested tuples and arrays in a type."""
    match kind:
        case Struct(members):
            return 1 + max(depth(member.type) for member in members)
        case Array(item):
            return 1 + depth(item)
    return 0
