"""Decoding of JSON objects as by Go's `encoding/json`, with its error texts.

Source: Go, encoding/json/decode.go; time/format.go for durations
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jsonrpc.text import Number, kind
from nodeapi.encoding import index

_MAX_INT = 2**63 - 1
_NANOSECONDS = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,  # U+00B5, the micro sign
    "μs": 10**3,  # U+03BC, the Greek letter
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_MAX_DURATION_LENGTH = 10_000
"""Most characters that are parsed and quoted in an error. Go has no such limit."""
_TERM = re.compile(r"([0-9]*)(?:\.([0-9]*))?([^0-9.]*)")


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a Go struct.

    path: its name in Go's errors: the struct, embedded structs, the field.
    type: `bool`, `int`, `string`, or a list such as `[]hexutil.Uint64`, whose elements
        are not checked. "" for any type.
    """

    path: str
    type: str = ""


def struct(value: Any, go_type: str, fields: Mapping[str, Field]) -> dict[str, Any]:
    """Return the members of an object that are fields, under the names of `fields`.

    fields: JSON name → field. Names are case-insensitive, unknown members are ignored,
        and null counts as absent.

    Raises: ValueError for the first error.
    """
    if value is None:
        return {}
    if type(value) is not dict:
        raise ValueError(mismatch(kind(value), go_type))
    names = {name.casefold(): name for name in fields}
    found = {}
    for given, member in value.items():
        name = names.get(given.casefold())
        if name is not None and member is not None:
            _check(member, fields[name])
            found[name] = member
    return found


def mismatch(value: str, go_type: str) -> str:
    """Return Go's error text for a value of another type."""
    return f"json: cannot unmarshal {value} into Go value of type {go_type}"


def integer(value: Any, go_type: str, smallest: int, largest: int) -> int:
    """Decode a JSON number to one of Go's integer types. As in Go, null is 0.

    Raises: ValueError with Go's error text for other values and fractions, and for
    numbers that the type does not have.
    """
    if value is None:
        return 0
    found = kind(value)
    if found != "number":
        raise ValueError(mismatch(found, go_type))
    if type(value) is not int or not smallest <= value <= largest:
        raise ValueError(mismatch(f"number {_literal(value)}", go_type))
    return value


def _literal(number: Any) -> str:
    """Return a JSON number as it was sent."""
    return number.text if isinstance(number, Number) else str(number)


def _check(value: Any, field: Field) -> None:
    """Raise ValueError if a value does not have the field's type."""
    if not field.type:
        return
    found = kind(value)
    if field.type == "int" and found == "number":
        if type(value) is int and abs(value) <= _MAX_INT:
            return
        found += f" {_literal(value)}"
    elif found == field.type or (found == "array" and field.type.startswith("[]")):
        return
    raise ValueError(
        f"json: cannot unmarshal {found} into Go struct field {field.path} "
        f"of type {field.type}"
    )


def uint64(value: Any, field: Field) -> int:
    """Decode an element of a field with type `[]hexutil.Uint64`.

    Raises: ValueError with Go's error text if it is not a hexadecimal quantity.
    """
    try:
        return index(value)
    except ValueError as error:
        # The same error at another place, with the name of the type.
        fault = str(error).removesuffix(" into Go value of type hexutil.Uint")
        element = field.type.removeprefix("[]")
        raise ValueError(
            f"{fault} into Go struct field {field.path} of type {element}"
        ) from error


def duration(text: str) -> float:
    """Return the seconds of a duration such as `5s`, `300ms`, `1m30.5s`, `-1h`.

    Raises: ValueError with Go's error text if the text is malformed.
    """
    if len(text) > _MAX_DURATION_LENGTH:
        raise ValueError(f"time: invalid duration of {len(text)} characters")
    rest = text[1:] if text[:1] in ("-", "+") else text
    if rest == "0":
        return 0.0
    if not rest:
        raise ValueError(f"time: invalid duration {_quoted(text)}")
    nanoseconds = 0
    while rest:
        term = _TERM.match(rest)
        assert term is not None  # it may be empty
        whole, fraction, unit = term.groups()
        if not whole and not fraction:
            raise ValueError(f"time: invalid duration {_quoted(text)}")
        if not unit:
            raise ValueError(f"time: missing unit in duration {_quoted(text)}")
        if unit not in _NANOSECONDS:
            raise ValueError(
                f"time: unknown unit {_quoted(unit)} in duration {_quoted(text)}"
            )
        # Digits beyond these make no difference, or go beyond the limit anyway.
        nanoseconds += int(whole.lstrip("0")[:40] or "0") * _NANOSECONDS[unit]
        digits = (fraction or "")[:18]
        nanoseconds += int(digits or "0") * _NANOSECONDS[unit] // 10 ** len(digits)
        if nanoseconds > _MAX_INT:
            raise ValueError(f"time: invalid duration {_quoted(text)}")
        rest = rest[term.end() :]
    seconds = nanoseconds / 10**9
    return -seconds if text[0] == "-" else seconds


def _quoted(text: str) -> str:
    """Return a text in quotes.

    Other characters than printable ASCII are escaped as in Go.
    """
    escaped = "".join(
        f"\\{chr(byte)}"
        if byte in b'"\\'
        else chr(byte)
        if 0x20 <= byte < 0x80
        else f"\\x{byte:02x}"
        for byte in text.encode("utf-8", "surrogatepass")
    )
    return f'"{escaped}"'
