"""SQL with the types of its parameters, and PostgreSQL's binary wire form of those.

Source: https://www.postgresql.org/docs/current/catalog-pg-type.html for the numbers,
`src/backend/utils/adt/arrayfuncs.c`, array_recv, for the form of an array.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import count
from struct import Struct
from typing import Any

Row = tuple[bytes | None, ...]
"""One row of a result: each column in binary form, None for NULL."""

_LENGTH = Struct("!i")
_INT8 = Struct("!q")
_SIZED_INT8 = Struct("!iq")
_ARRAY_HEADER = Struct("!iiIii")
_numbers = count(1)


def _sized_bytes(value: bytes) -> bytes:
    return _LENGTH.pack(len(value)) + value


def _sized_text(value: str) -> bytes:
    return _sized_bytes(value.encode())


def _sized_int8(value: int) -> bytes:
    return _SIZED_INT8.pack(8, value)


@dataclass(frozen=True, slots=True)
class ColumnType:
    """A PostgreSQL type of a look-up's key.

    oid, array_oid: PostgreSQL's ids of the type and of its array type.
    sized: encodes a value as an element of a binary array, after its length.
    """

    name: str
    oid: int
    array_oid: int
    sized: Callable[[Any], bytes]


BYTEA = ColumnType("bytea", 17, 1001, _sized_bytes)
INT8 = ColumnType("int8", 20, 1016, _sized_int8)
TEXT = ColumnType("text", 25, 1009, _sized_text)
UUID = ColumnType("uuid", 2950, 2951, _sized_bytes)


def array(column: ColumnType, values: Iterable[Any], length: int) -> bytes:
    """Return a one-dimensional array without NULLs in binary form."""
    header = _ARRAY_HEADER.pack(1, 0, column.oid, length, 1)
    return header + b"".join(map(column.sized, values))


def int8(value: int) -> bytes:
    """Return a single bigint in binary form."""
    return _INT8.pack(value)


def read_int8(column: bytes) -> int:
    """Return the value of a bigint column."""
    return int(_INT8.unpack(column)[0])


def read_bool(column: bytes) -> bool:
    """Return the value of a boolean column."""
    return column == b"\x01"


def read_array(column: bytes) -> list[bytes]:
    """Return the elements of a one-dimensional array without NULLs, in binary form."""
    if len(column) < _ARRAY_HEADER.size:
        return []  # an empty one has no dimension
    length = _ARRAY_HEADER.unpack_from(column)[3]
    unpack = _LENGTH.unpack_from
    elements = []
    position = _ARRAY_HEADER.size
    for _ in range(length):
        start = position + 4
        position = start + unpack(column, position)[0]
        elements.append(column[start:position])
    return elements


def read_int8_array(column: bytes) -> list[int]:
    """Return the numbers of a one-dimensional array of bigints without NULLs."""
    if len(column) < _ARRAY_HEADER.size:
        return []
    sized = _SIZED_INT8.iter_unpack(memoryview(column)[_ARRAY_HEADER.size :])
    return [number for _, number in sized]


class Statement:
    """One SQL command that each connection prepares when it first runs it."""

    __slots__ = ("name", "sql", "type_oids")

    def __init__(self, sql: str, type_oids: Iterable[int] = ()) -> None:
        self.sql = sql.encode()
        self.type_oids = list(type_oids)
        self.name = b"s%d" % next(_numbers)
