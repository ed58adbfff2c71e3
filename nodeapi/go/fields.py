"""Decoders of the fields of Go structs, with the error texts of Go's JSON decoder.

A decoder takes a JSON value that is not null, except inside of lists, and raises
ValueError with Go's text.

Source: go-ethereum v1.17.10, common/hexutil/json.go, common/types.go; Go 1.26,
encoding/json/decode.go
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

from jsonrpc.text import kind
from nodeapi.encoding import (
    BAD_DIGIT,
    EMPTY_NUMBER,
    LEADING_ZERO,
    MISSING_PREFIX,
    TOO_BIG,
    go_mismatch,
    hash32,
)

T = TypeVar("T")

Decoder = Callable[[Any], Any]

_TOO_BIG_256 = "hex number > 256 bits"
_VALUE = " into Go value of type "
_FIELD = " into Go struct field "
_PREFIXES = ("0x", "0X")
_SELF_DECODING = frozenset(
    {"AccessTuple", "SetCodeAuthorization", "Withdrawal", "simBlock"}
)
"""Structs with decoders of their own. An error inside of one names the struct around it.
"""
_QUANTITY = re.compile("0[xX](0|[1-9a-fA-F][0-9a-fA-F]*)")


class GoField(NamedTuple):
    """A field of a Go struct: the name of our attribute, and the decoder of its value."""

    name: str
    decode: Decoder


def decode_fields(
    value: Any, go_type: str, fields: Mapping[str, GoField]
) -> dict[str, Any]:
    """Return the members of an object that are fields of a struct, by our names.

    go_type: with the package, such as `ethapi.TransactionArgs`.
    fields: JSON name → field. Capitals do not matter, null counts as absent, and unknown
        members are ignored.

    Raises: ValueError for the first malformed member.
    """
    if type(value) is not dict:
        if value is None:
            return {}
        raise ValueError(go_mismatch(kind(value), go_type))
    found = {}
    for given, member in value.items():
        field = fields.get(given)
        if field is None:
            field, given = _field_of_other_case(given, fields)
            if field is None:
                continue
        if member is None:
            continue
        try:
            found[field.name] = field.decode(member)
        except ValueError as error:
            struct = go_type.rpartition(".")[2]
            raise ValueError(_within(str(error), struct, given)) from None
    return found


def _field_of_other_case(
    given: str, fields: Mapping[str, GoField]
) -> tuple[GoField | None, str]:
    folded = given.casefold()
    for name, field in fields.items():
        if name.casefold() == folded:
            return field, name
    return None, given


def _within(fault: str, struct: str, name: str) -> str:
    """Return the text of an error inside of a struct's field.

    An error inside of a struct that the field contains names the path of both fields,
    and the inner struct.
    """
    before, found, after = fault.partition(_VALUE)
    if found:
        return f"{before}{_FIELD}{struct}.{name} of type {after}"
    before, found, after = fault.partition(_FIELD)
    if found:
        named, _, inner = after.partition(".")
        named = struct if named in _SELF_DECODING else named
        return f"{before}{_FIELD}{named}.{name}.{inner}"
    return fault


def in_own_decoder(fault: str, struct: str) -> str:
    """Return the text of an error in the parts that a struct's own decoder decodes.

    An inner struct, if the text names one, is replaced by the struct.
    """
    before, found, after = fault.partition(_FIELD)
    return f"{before}{found}{struct}.{after.partition('.')[2]}" if found else fault


def required(found: dict[str, Any], names: Mapping[str, str], struct: str) -> None:
    """Check that all required fields of a struct are there.

    names: ours → JSON name, in the order of the struct. Raises: ValueError.
    """
    for ours, name in names.items():
        if ours not in found:
            raise ValueError(f"missing required field '{name}' for {struct}")


def list_of(decode: Callable[[Any], T], go_type: str) -> Callable[[Any], tuple[T, ...]]:
    """Return the decoder of a list. go_type: of the list."""

    def decode_list(value: Any) -> tuple[T, ...]:
        if type(value) is not list:
            raise ValueError(go_mismatch(kind(value), go_type))
        return tuple([decode(each) for each in value])

    return decode_list


def big(value: Any) -> int:
    """Decode a quantity of up to 256 bits."""
    return _quantity(value, "*hexutil.Big", 64, _TOO_BIG_256)


def uint64(value: Any) -> int:
    """Decode a quantity of up to 64 bits."""
    return _quantity(value, "hexutil.Uint64", 16, TOO_BIG)


def uint256(value: Any) -> int:
    """Decode a quantity of up to 256 bits, as a field of an authorization."""
    return _quantity(value, "*uint256.Int", 64, _TOO_BIG_256)


def words_by_slot(value: Any) -> dict[int, int]:
    """Decode an object with 32-byte words by 32-byte slots."""
    if type(value) is not dict:
        raise ValueError(go_mismatch(kind(value), "map[common.Hash]common.Hash"))
    return {
        int.from_bytes(hash32(slot)): int.from_bytes(hash32(word))
        for slot, word in value.items()
    }


def _quantity(value: Any, go_type: str, most: int, too_big: str) -> int:
    if type(value) is not str:
        raise ValueError(go_mismatch("non-string", go_type))
    if len(value) <= 2 + most and _QUANTITY.fullmatch(value):
        return int(value, 16)
    if not value:
        return 0
    raise ValueError(go_mismatch(_quantity_fault(value, most, too_big), go_type))


def _quantity_fault(value: str, most: int, too_big: str) -> str:
    """Return the fault of a quantity that is not empty."""
    if not value.startswith(_PREFIXES):
        return MISSING_PREFIX
    digits = value[2:].encode("utf-8", "surrogatepass")
    if not digits:
        return EMPTY_NUMBER
    if digits.startswith(b"0") and len(digits) > 1:
        return LEADING_ZERO
    return too_big if len(digits) > most else BAD_DIGIT


def go_duration(seconds: float) -> str:
    """Return a duration up to the microsecond: `5s`, `300ms`, `1m30.5s`."""
    microseconds = round(seconds * 10**6)
    if microseconds < 1000:
        return f"{microseconds}µs" if microseconds else "0s"
    if microseconds < 10**6:
        return f"{microseconds / 1000:g}ms"
    minutes, rest = divmod(microseconds, 60 * 10**6)
    hours, minutes = divmod(minutes, 60)
    text = f"{rest / 10**6:.6f}".rstrip("0").rstrip(".") + "s"
    if hours:
        return f"{hours}h{minutes}m{text}"
    return f"{minutes}m{text}" if minutes else text
