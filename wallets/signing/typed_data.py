"""eth_signTypedData_v4: a structure whose types come along.

Other wallets read values leniently: a text as a number, "false" as false, a missing text
as an empty one. What is shown would then not be what is signed. Here a value has the
JSON form of its type, or the whole is refused. What a type does not name is neither
signed nor shown.
Source: https://eips.ethereum.org/EIPS/eip-712; null in the place of a structure is zero,
as eth_signTypedData_v4 has it in MetaMask
"""

from __future__ import annotations

import json
import re
from binascii import unhexlify
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

MAX_BYTES = 64 * 1024
"""Of the data as JSON."""

MAX_VALUES = 1000
"""Single values, in all: the page shows each of them."""

MAX_DEPTH = 16
"""Structures and arrays in one another."""

MAX_MEMBERS = 64
"""Types, and members of one type."""

DOMAIN = "EIP712Domain"

_DOMAIN_MEMBERS = (
    ("name", "string"),
    ("version", "string"),
    ("chainId", "uint256"),
    ("verifyingContract", "address"),
    ("salt", "bytes32"),
)
"""What a domain may say, in the standard's order."""

_TYPE_NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_$:.-]{0,99}")
"""Beyond the standard's identifiers: what dapps in use have in theirs."""

_MEMBER_NAME = re.compile(r"[^\s,()\[\]]{1,100}")
_ARRAY = re.compile(r"(.+)\[([1-9][0-9]{0,3})?\]")
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")
_NUMBER = re.compile(r"-?(?:0x[0-9a-fA-F]{1,64}|[0-9]{1,78})")
_INTEGERS = {
    f"{sign}int{bits}": (sign == "", bits)
    for sign in ("", "u")
    for bits in range(8, 257, 8)
}
_FIXED_BYTES = {f"bytes{size}": size for size in range(1, 33)}
_ATOMIC = {"bool", "address", "string", "bytes", *_INTEGERS, *_FIXED_BYTES}

Member = tuple[str, str]
"""Name and type."""


@dataclass(frozen=True, slots=True)
class Field:
    """A value with its name, for people.

    value: of a single value; None of a structure, an array or nothing.
    """

    name: str
    type: str
    value: str | None
    fields: tuple[Field, ...] = ()


@dataclass(frozen=True, slots=True)
class TypedData:
    """A structure to be signed. Its values have the Python types of their own.

    types: those that the primary type needs, without the domain's.
    """

    types: Mapping[str, Sequence[Member]]
    primary_type: str
    domain: Mapping[str, Any]
    message: Mapping[str, Any]

    @property
    def chain_id(self) -> int | None:
        """The chain for which the signature is meant, None when it doesn't say."""
        found: int | None = self.domain.get("chainId")
        return found

    def domain_fields(self) -> tuple[Field, ...]:
        """Return what the domain says."""
        present = [member for member in _DOMAIN_MEMBERS if member[0] in self.domain]
        return tuple(self._field(*member, self.domain[member[0]]) for member in present)

    def fields(self) -> tuple[Field, ...]:
        """Return what the message says."""
        return self._field("", self.primary_type, self.message).fields

    def to_text(self) -> str:
        """Return the data as JSON, which `read_typed_data` reads as the same."""
        domain = [member for member in _DOMAIN_MEMBERS if member[0] in self.domain]
        types = {DOMAIN: domain, **self.types}
        return json.dumps(
            {
                "types": {name: _named(members) for name, members in types.items()},
                "primaryType": self.primary_type,
                "domain": self.domain,
                "message": self.message,
            },
            default=lambda value: "0x" + value.hex(),
        )

    def _field(self, name: str, type_name: str, value: Any) -> Field:
        array = _ARRAY.fullmatch(type_name)
        if array is not None:
            elements = enumerate(value)
            fields = [self._field(f"{n}", array[1], item) for n, item in elements]
            return Field(name, type_name, None, tuple(fields))
        if type_name in self.types:
            members = [] if value is None else self.types[type_name]
            fields = [self._field(n, t, value[n]) for n, t in members]
            return Field(name, type_name, None, tuple(fields))
        if isinstance(value, bytes):
            return Field(name, type_name, "0x" + value.hex())
        if isinstance(value, bool):
            return Field(name, type_name, "true" if value else "false")
        return Field(name, type_name, str(value))


def read_typed_data(value: Any) -> TypedData:
    """Return the data that JSON, or a text with JSON in it, holds.

    Raises: ValueError, saying what is wrong where.
    """
    document = _parsed(value)
    types = _read_types(document.get("types"))
    primary_type, domain = document.get("primaryType"), document.get("domain")
    if not isinstance(primary_type, str) or primary_type not in types:
        _refuse("primaryType", "is not one of the types")
    if primary_type == DOMAIN:
        _refuse("primaryType", "is the domain, which says nothing to be signed")
    _check_domain_type(types.pop(DOMAIN, None))
    if not isinstance(domain, dict):
        _refuse("domain", "expected an object")
    needed = _needed(primary_type, types)
    used = {name: members for name, members in types.items() if name in needed}
    _refuse_circles(primary_type, used)
    domain_members = document["types"][DOMAIN]
    domain_type = [(one["name"], one["type"]) for one in domain_members]
    reader = _Reader(used)
    return TypedData(
        types=used,
        primary_type=primary_type,
        domain=reader.struct("domain", domain_type, domain, 1),
        message=reader.struct(
            "message", used[primary_type], document.get("message"), 1
        ),
    )


def sign_typed_data(data: TypedData, key: bytes) -> bytes:
    """Return the 65 bytes r, s, v of the signature.

    key: 32 bytes.
    """
    from eth_account import Account
    from eth_account.messages import encode_typed_data

    types = {name: _named(members) for name, members in data.types.items()}
    encoded = encode_typed_data(dict(data.domain), types, dict(data.message))
    return bytes(Account.sign_message(encoded, key).signature)


class _Reader:
    """Reads values by their types, and counts them."""

    def __init__(self, types: Mapping[str, Sequence[Member]]) -> None:
        self._types = types
        self._values = 0

    def struct(
        self, path: str, members: Sequence[Member], value: Any, depth: int
    ) -> dict[str, Any]:
        if not isinstance(value, dict):
            _refuse(path, "expected an object")
        return {
            name: self.value(f"{path}.{name}", type_name, value.get(name), depth)
            for name, type_name in members
        }

    def value(self, path: str, type_name: str, value: Any, depth: int) -> Any:
        self._values += 1
        if self._values > MAX_VALUES:
            _refuse("message", f"more than {MAX_VALUES} values")
        if depth > MAX_DEPTH:
            _refuse(path, f"more than {MAX_DEPTH} structures in one another")
        array = _ARRAY.fullmatch(type_name)
        if array is not None:
            return self._array(path, array[1], array[2], value, depth)
        members = self._types.get(type_name)
        if members is None:
            return _read_atomic(path, type_name, value)
        if value is None:
            return None
        return self.struct(path, members, value, depth + 1)

    def _array(
        self, path: str, element: str, length: str | None, value: Any, depth: int
    ) -> list[Any]:
        if not isinstance(value, list):
            _refuse(path, "expected an array")
        if length is not None and len(value) != int(length):
            _refuse(path, f"expected {length} elements")
        return [
            self.value(f"{path}[{index}]", element, item, depth + 1)
            for index, item in enumerate(value)
        ]


def _parsed(value: Any) -> dict[str, Any]:
    """Return the object that typed data is; a text is read as JSON.

    Raises: ValueError.
    """
    text = value
    if not isinstance(value, str):
        try:
            text = json.dumps(value)
        except (TypeError, ValueError, RecursionError):
            _refuse("", "expected an object without fractions or huge numbers")
    if len(text) > MAX_BYTES:
        _refuse("", f"longer than {MAX_BYTES} bytes")
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        _refuse("", "is not JSON")
    if not isinstance(document, dict):
        _refuse("", "expected an object")
    return document


def _read_types(value: Any) -> dict[str, list[Member]]:
    if not isinstance(value, dict) or len(value) > MAX_MEMBERS:
        _refuse("types", f"expected an object with at most {MAX_MEMBERS} types")
    types = {}
    for name, members in value.items():
        if not _TYPE_NAME.fullmatch(name) or name in _ATOMIC:
            _refuse("types", "a type's name is no identifier")
        types[name] = _read_members(f"types.{name}", members)
    for name, members in types.items():
        for member, type_name in members:
            if _core(type_name) not in _ATOMIC | types.keys():
                _refuse(f"types.{name}.{member}", "its type is unknown")
    return types


def _read_members(path: str, value: Any) -> list[Member]:
    if not isinstance(value, list) or len(value) > MAX_MEMBERS:
        _refuse(path, f"expected an array of at most {MAX_MEMBERS} members")
    members = []
    for member in value:
        pair = member if isinstance(member, dict) else {}
        name, type_name = pair.get("name"), pair.get("type")
        if not isinstance(name, str) or not _MEMBER_NAME.fullmatch(name):
            _refuse(path, "a member's name is missing, or can't be one")
        if not isinstance(type_name, str) or len(type_name) > 120:
            _refuse(f"{path}.{name}", "its type is missing, or can't be one")
        members.append((name, type_name))
    if len({name for name, _ in members}) != len(members):
        _refuse(path, "two members have the same name")
    return members


def _check_domain_type(members: Sequence[Member] | None) -> None:
    """Refuse a domain that is not the standard's, which others would sign otherwise."""
    if members is None:
        _refuse(f"types.{DOMAIN}", "required")
    if tuple(members) != tuple(one for one in _DOMAIN_MEMBERS if one in members):
        _refuse(f"types.{DOMAIN}", "is not made of the standard's members, in order")


def _needed(name: str, types: Mapping[str, Sequence[Member]]) -> set[str]:
    """Return the structures that one is made of, itself included."""
    found, waiting = set[str](), [name]
    while waiting:
        struct = waiting.pop()
        if struct in types and struct not in found:
            found.add(struct)
            waiting += [_core(type_name) for _, type_name in types[struct]]
    return found


def _refuse_circles(primary: str, types: Mapping[str, Sequence[Member]]) -> None:
    """Refuse a structure that another needs which it needs itself.

    eth-account finds no primary type among them. One that has its own kind in it, such
    as a mail with the mail that it answers, is none of these.
    """
    for _, type_name in [
        one for name in types for one in types[name] if name != primary
    ]:
        if _core(type_name) == primary:
            _refuse("types", "the primary type is part of another one")


def _core(type_name: str) -> str:
    return type_name.partition("[")[0] if _is_type(type_name) else ""


def _is_type(type_name: str) -> bool:
    array = _ARRAY.fullmatch(type_name)
    return _is_type(array[1]) if array else "[" not in type_name


def _read_atomic(path: str, type_name: str, value: Any) -> Any:
    if type_name == "bool":
        if not isinstance(value, bool):
            _refuse(path, "expected true or false")
        return value
    if type_name in _INTEGERS:
        return _read_integer(path, type_name, value)
    if not isinstance(value, str):
        kind = "" if type_name == "string" else f"{type_name} as "
        _refuse(path, f"expected {kind}a string")
    if type_name == "string":
        return _read_string(path, value)
    if type_name == "address":
        if not _ADDRESS.fullmatch(value):
            _refuse(path, "expected an address")
        return value.lower()
    return _read_bytes(path, type_name, value)


def _read_integer(path: str, type_name: str, value: Any) -> int:
    """Read a JSON number, or a text with a decimal or a hexadecimal one."""
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        value = int(value, 16 if "x" in value else 10)
    if isinstance(value, bool) or not isinstance(value, int):
        _refuse(path, f"expected {type_name}, beyond 2**53 as a string")
    is_signed, bits = _INTEGERS[type_name]
    least = -(2 ** (bits - 1)) if is_signed else 0
    if not least <= value < least + 2**bits:
        _refuse(path, f"does not fit into {type_name}")
    return value


def _read_string(path: str, value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        _refuse(path, "has halves of characters")
    return value


def _read_bytes(path: str, type_name: str, value: str) -> bytes:
    size = _FIXED_BYTES.get(type_name)
    try:
        found = unhexlify(value.removeprefix("0x")) if value[:2] == "0x" else None
    except ValueError:
        found = None
    if found is None or size not in (None, len(found)):
        _refuse(path, f"expected {type_name} as hexadecimal data")
    return found


def _named(members: Sequence[Member]) -> list[dict[str, str]]:
    return [{"name": name, "type": type_name} for name, type_name in members]


def _refuse(path: str, why: str) -> NoReturn:
    raise ValueError(f"{path[:200]}: {why}" if path else why)
