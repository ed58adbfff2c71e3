"""Reads and checks the types of EIP-712 data.

Types that wallets would interpret differently are rejected, such as a structure with
the name of an elementary type.
Source: https://eips.ethereum.org/EIPS/eip-712, "Definition of typed structured data"
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NoReturn

from wallets.signing.typed_hashes import DOMAIN, Member, Types

MAX_MEMBERS = 64
"""Limit of the number of types, and of the members of one type."""

DOMAIN_MEMBERS = (
    ("name", "string"),
    ("version", "string"),
    ("chainId", "uint256"),
    ("verifyingContract", "address"),
    ("salt", "bytes32"),
)
"""The members that a domain may have, in the standard's order."""

_TYPE_NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_$:.-]{0,99}")
"""More than the standard's identifiers, because dapps in use have such names."""

_MEMBER_NAME = re.compile(r"[^\s,()\[\]]{1,100}")
_ELEMENTARY = re.compile(
    r"u?int[0-9]*|bytes[0-9]*|byte|u?fixed[0-9x]*|bool|string|address|function"
    r"|mapping|tuple|var"
)
"""Names that Solidity, the ABI or the signing library reads as a type of its own. Some
are not valid types, such as `uint7`; none of them can name a structure.
Source: https://docs.soliditylang.org/en/latest/grammar.html, elementary-type-name;
https://docs.soliditylang.org/en/latest/abi-spec.html#types"""

ARRAY = re.compile(r"(.+)\[([1-9][0-9]{0,3})?\]")

INTEGERS = {
    f"{sign}int{bits}": (sign == "", bits)
    for sign in ("", "u")
    for bits in range(8, 257, 8)
}
FIXED_BYTES = {f"bytes{size}": size for size in range(1, 33)}
_ATOMIC = {"bool", "address", "string", "bytes", *INTEGERS, *FIXED_BYTES}


def read_types(value: Any) -> dict[str, list[Member]]:
    """Parse the `types` of typed data. Return the members of each structure by name.

    Raises: ValueError naming the place of the first fault.
    """
    if not isinstance(value, dict) or len(value) > MAX_MEMBERS:
        refuse("types", f"expected an object with at most {MAX_MEMBERS} types")
    types = {}
    for name, members in value.items():
        if not _TYPE_NAME.fullmatch(name):
            refuse("types", "a type's name is not an identifier")
        if _ELEMENTARY.fullmatch(name):
            refuse("types", f"{name} is an elementary type and can't be a structure")
        types[name] = _read_members(f"types.{name}", members)
    known = (_ATOMIC | types.keys()) - {DOMAIN}
    for name, members in types.items():
        for member, type_name in members:
            if _core(type_name) not in known:
                refuse(f"types.{name}.{member}", "its type is unknown")
    return types


def _read_members(path: str, value: Any) -> list[Member]:
    if not isinstance(value, list) or len(value) > MAX_MEMBERS:
        refuse(path, f"expected an array of at most {MAX_MEMBERS} members")
    members = []
    for member in value:
        pair = member if isinstance(member, dict) else {}
        name, type_name = pair.get("name"), pair.get("type")
        if isinstance(name, str):
            read_string(path, name)
        if not isinstance(name, str) or not _MEMBER_NAME.fullmatch(name):
            refuse(path, "a member's name is missing or invalid")
        if not isinstance(type_name, str) or len(type_name) > 120:
            refuse(f"{path}.{name}", "its type is missing or invalid")
        members.append((name, type_name))
    if len({name for name, _ in members}) != len(members):
        refuse(path, "two members have the same name")
    return members


def check_domain_type(members: Sequence[Member] | None) -> None:
    """Raise ValueError unless the domain's members are the standard's, in order.

    Wallets sign other domains differently.
    """
    if members is None:
        refuse(f"types.{DOMAIN}", "required")
    if tuple(members) != tuple(one for one in DOMAIN_MEMBERS if one in members):
        refuse(f"types.{DOMAIN}", "must have the standard's members, in order")


def refuse_circles(primary: str, types: Types) -> None:
    """Raise ValueError if another structure refers to the primary type.

    In this case, eth-account can't determine the primary type. The primary type may
    contain itself, for example an email that contains an earlier one.
    """
    for _, type_name in [
        one for name in types for one in types[name] if name != primary
    ]:
        if _core(type_name) == primary:
            refuse("types", "the primary type is part of another one")


def _core(type_name: str) -> str:
    return type_name.partition("[")[0] if _is_type(type_name) else ""


def _is_type(type_name: str) -> bool:
    array = ARRAY.fullmatch(type_name)
    return _is_type(array[1]) if array else "[" not in type_name


def read_string(path: str, value: str) -> str:
    """Return a string that can be encoded as UTF-8.

    Raises: ValueError for a lone surrogate, which JSON can hold as an escape.
    """
    try:
        value.encode()
    except UnicodeEncodeError:
        refuse(path, "contains a lone surrogate, which is not a character")
    return value


def refuse(path: str, why: str) -> NoReturn:
    """Raise a ValueError that names a place in the data."""
    raise ValueError(f"{path[:200]}: {why}" if path else why)
