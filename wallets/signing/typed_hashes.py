"""EIP-712 hashes, computed here and compared with those of the signing library.

The page shows data as this wallet reads it, and eth-account signs data as eth-account
reads it. Both must agree, so the two hashes that a signature covers are computed twice.
Source: https://eips.ethereum.org/EIPS/eip-712, "Definition of hashStruct"
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from eth_hash.auto import keccak

if TYPE_CHECKING:
    from eth_account.messages import SignableMessage

DOMAIN = "EIP712Domain"

Member = tuple[str, str]
"""Name and type."""

Types = Mapping[str, Sequence[Member]]
"""Structures by name, each with its members in order."""

_ARRAY = re.compile(r"(.+)\[[0-9]*\]")


class HashMismatch(ValueError):
    """Raised when the signing library encodes the data differently."""


def encode(
    domain: Mapping[str, Any],
    domain_members: Sequence[Member],
    types: Types,
    primary_type: str,
    message: Mapping[str, Any],
) -> SignableMessage:
    """Return typed data in the form that eth-account signs.

    The values have the Python types that `read_typed_data` gives them.
    types: exactly those that the primary type needs, without the domain's.
    Raises: HashMismatch when the library refuses the data or hashes it differently.
    """
    from eth_account.messages import encode_typed_data

    named = {
        name: [{"name": member, "type": kind} for member, kind in members]
        for name, members in types.items()
    }
    try:
        encoded = encode_typed_data(dict(domain), named, dict(message))
    except Exception as error:  # of any class: the library documents none
        fault = f"the signing library can't encode it ({type(error).__name__})"
        raise HashMismatch(f"types: {fault}") from error
    if encoded.header != hash_struct(DOMAIN, {DOMAIN: domain_members}, domain):
        raise HashMismatch("domain: the signing library hashes it differently")
    if encoded.body != hash_struct(primary_type, types, message):
        raise HashMismatch(f"{primary_type}: the signing library hashes it differently")
    return encoded


def structures_in(name: str, types: Types) -> set[str]:
    """Return the names of the structures that a structure refers to, itself included."""
    found, pending = set[str](), [name]
    while pending:
        kind = pending.pop()
        if kind in types and kind not in found:
            found.add(kind)
            pending += [member.partition("[")[0] for _, member in types[kind]]
    return found


def encode_type(name: str, types: Types) -> str:
    """Return a structure's type as text: `Mail(Person from)Person(string name)`."""
    others = structures_in(name, types) - {name}
    return "".join(
        f"{one}({','.join(f'{kind} {member}' for member, kind in types[one])})"
        for one in [name, *sorted(others)]
    )


def hash_struct(name: str, types: Types, value: Mapping[str, Any]) -> bytes:
    """Return hashStruct of a structure: 32 bytes."""
    words = [_word(kind, types, value[member]) for member, kind in types[name]]
    return keccak(keccak(encode_type(name, types).encode()) + b"".join(words))


def _word(kind: str, types: Types, value: Any) -> bytes:
    """Return encodeData of a single value: 32 bytes."""
    if array := _ARRAY.fullmatch(kind):
        return keccak(b"".join(_word(array[1], types, item) for item in value))
    if kind in types:
        return bytes(32) if value is None else hash_struct(kind, types, value)
    if kind == "string":
        return keccak(value.encode())
    if kind == "bytes":
        return keccak(value)
    if kind == "address":
        return bytes.fromhex(value[2:]).rjust(32, b"\0")
    if isinstance(value, bytes):
        return value.ljust(32, b"\0")
    return (int(value) % 2**256).to_bytes(32)
