"""eth_signTypedData_v4: reads, lists and signs structures that come with their types.

Other wallets convert values: a text to a number, "false" to false, a missing text to an
empty one. The page would then not show what is signed. Here a value must have the JSON
form of its type, otherwise the data is rejected. Members that the type does not have
are neither signed nor shown.
Source: https://eips.ethereum.org/EIPS/eip-712; null for a structure is zero, as in
    MetaMask
"""

from __future__ import annotations

import json
import re
from binascii import unhexlify
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wallets.signing.typed_hashes import (
    DOMAIN,
    Member,
    encode,
    encode_type,
    structures_in,
)
from wallets.signing.typed_types import (
    ARRAY,
    DOMAIN_MEMBERS,
    FIXED_BYTES,
    INTEGERS,
    check_domain_type,
    read_string,
    read_types,
    refuse,
    refuse_circles,
)

if TYPE_CHECKING:
    from eth_account.messages import SignableMessage

MAX_BYTES = 64 * 1024
"""Size limit of the data as JSON."""

MAX_VALUES = 1000
"""Limit of the number of values; the page shows each of them."""

MAX_DEPTH = 16
"""Limit of the nesting of structures and arrays."""

MAX_TYPE_TEXT = 2**20
"""Limit of the number of structures times the characters of the encoded type. The
signing library encodes the type again for each structure; at the limit this takes
less than 0.1 s."""

_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")
_NUMBER = re.compile(r"-?(?:0x[0-9a-fA-F]{1,64}|[0-9]{1,78})")


@dataclass(frozen=True, slots=True)
class Field:
    """A value with its name and type, for display.

    value: a single value as text; "null" for a structure that is null; None for other
        structures and arrays, whose values are in `fields`.
    note: what the value means, such as a date; "" if that is unknown.
    """

    name: str
    type: str
    value: str | None
    fields: tuple[Field, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class TypedData:
    """A structure to be signed; values have the types that `read_typed_data` returns.

    types: those that the primary type needs, without the domain's.
    """

    types: Mapping[str, Sequence[Member]]
    primary_type: str
    domain: Mapping[str, Any]
    message: Mapping[str, Any]

    @property
    def chain_id(self) -> int | None:
        """The chain for which the signature is valid, None if the domain has no chain id."""
        found: int | None = self.domain.get("chainId")
        return found

    @property
    def domain_members(self) -> list[Member]:
        """The members of the domain's type."""
        return [member for member in DOMAIN_MEMBERS if member[0] in self.domain]

    def domain_fields(self) -> tuple[Field, ...]:
        """Return the domain's values for display."""
        return tuple(
            self._field(*member, self.domain[member[0]])
            for member in self.domain_members
        )

    def fields(self) -> tuple[Field, ...]:
        """Return the message's values for display."""
        return self._field("", self.primary_type, self.message).fields

    def to_text(self) -> str:
        """Return the data as JSON; `read_typed_data` reads it back unchanged."""
        types = {DOMAIN: self.domain_members, **self.types}
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
        array = ARRAY.fullmatch(type_name)
        if array is not None:
            elements = enumerate(value)
            fields = [self._field(f"{n}", array[1], item) for n, item in elements]
            return Field(name, type_name, None, tuple(fields))
        if type_name in self.types:
            if value is None:
                return Field(name, type_name, "null")
            fields = [self._field(n, t, value[n]) for n, t in self.types[type_name]]
            return Field(name, type_name, None, tuple(fields))
        if isinstance(value, bytes):
            return Field(name, type_name, "0x" + value.hex())
        if isinstance(value, bool):
            return Field(name, type_name, "true" if value else "false")
        return Field(name, type_name, str(value))


def read_typed_data(value: Any) -> TypedData:
    """Return typed data, given as a JSON object or as its text.

    Raises: ValueError with the place and the fault.
    """
    document = _parsed(value)
    types = read_types(document.get("types"))
    primary_type, domain = document.get("primaryType"), document.get("domain")
    if not isinstance(primary_type, str) or primary_type not in types:
        refuse("primaryType", "is not one of the types")
    if primary_type == DOMAIN:
        refuse("primaryType", "is the domain, which can't be signed alone")
    check_domain_type(types.pop(DOMAIN, None))
    if not isinstance(domain, dict):
        refuse("domain", "expected an object")
    needed = structures_in(primary_type, types)
    used = {name: members for name, members in types.items() if name in needed}
    refuse_circles(primary_type, used)
    domain_members = document["types"][DOMAIN]
    domain_type = [(one["name"], one["type"]) for one in domain_members]
    reader = _Reader(used)
    data = TypedData(
        types=used,
        primary_type=primary_type,
        domain=reader.struct("domain", domain_type, domain, 1),
        message=reader.struct(
            "message", used[primary_type], document.get("message"), 1
        ),
    )
    if reader.structures * len(encode_type(primary_type, used)) > MAX_TYPE_TEXT:
        refuse("types", "too long for so many structures")
    _encode(data)
    return data


def sign_typed_data(data: TypedData, key: bytes) -> bytes:
    """Return the 65 bytes r, s, v of the signature.

    key: 32 bytes.
    Raises: HashMismatch.
    """
    from eth_account import Account

    return bytes(Account.sign_message(_encode(data), key).signature)


def _encode(data: TypedData) -> SignableMessage:
    return encode(
        data.domain, data.domain_members, data.types, data.primary_type, data.message
    )


class _Reader:
    """Reads values by their types, and counts them."""

    def __init__(self, types: Mapping[str, Sequence[Member]]) -> None:
        self._types = types
        self._values = 0
        self.structures = 0

    def struct(
        self, path: str, members: Sequence[Member], value: Any, depth: int
    ) -> dict[str, Any]:
        if not isinstance(value, dict):
            refuse(path, "expected an object")
        self.structures += 1
        return {
            name: self.value(f"{path}.{name}", type_name, value.get(name), depth)
            for name, type_name in members
        }

    def value(self, path: str, type_name: str, value: Any, depth: int) -> Any:
        self._values += 1
        if self._values > MAX_VALUES:
            refuse("message", f"more than {MAX_VALUES} values")
        if depth > MAX_DEPTH:
            refuse(path, f"structures nested more than {MAX_DEPTH} levels deep")
        array = ARRAY.fullmatch(type_name)
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
            refuse(path, "expected an array")
        if length is not None and len(value) != int(length):
            refuse(path, f"expected {length} elements")
        return [
            self.value(f"{path}[{index}]", element, item, depth + 1)
            for index, item in enumerate(value)
        ]


def _parsed(value: Any) -> dict[str, Any]:
    """Return the JSON object of typed data.

    Raises: ValueError.
    """
    text = value
    if not isinstance(value, str):
        try:
            text = json.dumps(value)
        except (TypeError, ValueError, RecursionError):
            refuse("", "expected an object without fractions or huge numbers")
    if len(text) > MAX_BYTES:
        refuse("", f"longer than {MAX_BYTES} bytes")
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        refuse("", "is not JSON")
    if not isinstance(document, dict):
        refuse("", "expected an object")
    return document


def _read_atomic(path: str, type_name: str, value: Any) -> Any:
    if type_name == "bool":
        if not isinstance(value, bool):
            refuse(path, "expected true or false")
        return value
    if type_name in INTEGERS:
        return _read_integer(path, type_name, value)
    if not isinstance(value, str):
        kind = "" if type_name == "string" else f"{type_name} as "
        refuse(path, f"expected {kind}a string")
    if type_name == "string":
        return read_string(path, value)
    if type_name == "address":
        if not _ADDRESS.fullmatch(value):
            refuse(path, "expected an address")
        return value.lower()
    return _read_bytes(path, type_name, value)


def _read_integer(path: str, type_name: str, value: Any) -> int:
    """Return an integer, given as a JSON number or as decimal or hexadecimal text."""
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        value = int(value, 16 if "x" in value else 10)
    if isinstance(value, bool) or not isinstance(value, int):
        refuse(path, f"expected {type_name}; above 2**53 as a string")
    is_signed, bits = INTEGERS[type_name]
    least = -(2 ** (bits - 1)) if is_signed else 0
    if not least <= value < least + 2**bits:
        refuse(path, f"does not fit into {type_name}")
    return value


def _read_bytes(path: str, type_name: str, value: str) -> bytes:
    size = FIXED_BYTES.get(type_name)
    try:
        found = unhexlify(value.removeprefix("0x")) if value[:2] == "0x" else None
    except ValueError:
        found = None
    if found is None or size not in (None, len(found)):
        refuse(path, f"expected {type_name} as hexadecimal data")
    return found


def _named(members: Sequence[Member]) -> list[dict[str, str]]:
    return [{"name": name, "type": type_name} for name, type_name in members]
