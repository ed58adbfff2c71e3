"""Reads contract ABIs in JSON, as compilers write them and people upload them.

Source: https://docs.soliditylang.org/en/latest/abi-spec.html#json
"""

from __future__ import annotations

import re
from typing import Any

import orjson

from abi.definitions import IDENTIFIER, Definition, Kind
from abi.types import (
    MAX_DEPTH,
    InvalidType,
    Parameter,
    Type,
    arrays,
    elementary,
    struct,
)

MAX_BYTES = 512 * 1024
"""Size of an uploaded text. The longest ABIs of deployed contracts have about 200 KiB."""

MAX_DEFINITIONS = 1000
"""Functions, events and errors of one ABI."""

MAX_PARAMETERS = 256
"""Parameters of one definition, members of tuples included."""

_TYPE = re.compile(r"([a-z][a-z0-9]{0,30})((?:\[[0-9]{0,9}\])*)")
_BRACKETS = re.compile(r"\[([0-9]*)\]")


class InvalidAbi(ValueError):
    """Raised for a text that is not a contract ABI. The message gives the reason."""


def read_abi(text: str | bytes) -> list[Definition]:
    """Return the functions, events and errors of an ABI, each once.

    text: a JSON array, or an object with the array as `abi`, as Hardhat, Foundry and
        solc write. Constructors and fallback functions are omitted.

    Raises: InvalidAbi.
    """
    data = text.encode(errors="replace") if isinstance(text, str) else text
    if len(data) > MAX_BYTES:
        raise InvalidAbi(f"The ABI is larger than {MAX_BYTES // 1024} KiB.")
    try:
        found = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise InvalidAbi(f"Invalid JSON: {error.msg}.") from None
    if isinstance(found, dict):
        found = found.get("abi")
    if not isinstance(found, list):
        raise InvalidAbi(
            "An ABI has to be a JSON array, or an object with the member abi."
        )
    definitions: dict[tuple[Kind, str], Definition] = {}
    for number, entry in enumerate(found):
        definition = _definition(number, entry)
        if definition is not None:
            name = definition.kind, definition.signature
            definitions.setdefault(name, definition)
        if len(definitions) > MAX_DEFINITIONS:
            raise InvalidAbi(
                f"The ABI has more than {MAX_DEFINITIONS:,} functions, events and errors."
            )
    if not definitions:
        raise InvalidAbi("This ABI has no function, event or error.")
    return list(definitions.values())


def _definition(number: int, entry: Any) -> Definition | None:
    """Return the definition in an entry, None for a constructor or fallback function."""
    if not isinstance(entry, dict):
        raise InvalidAbi(f"Entry {number} is not an object.")
    try:
        kind = Kind(entry.get("type", "function"))
    except ValueError:
        if entry["type"] in ("constructor", "fallback", "receive"):
            return None
        raise InvalidAbi(f"Entry {number} has an unknown type.") from None
    name = entry.get("name")
    if not isinstance(name, str) or not IDENTIFIER.fullmatch(name):
        raise InvalidAbi(f"Entry {number} has no valid name.")
    count = _Count()
    try:
        inputs = _parameters(entry.get("inputs", []), 0, count)
        outputs: tuple[Parameter, ...] = ()
        if kind is Kind.FUNCTION:
            outputs = _parameters(entry.get("outputs", []), 0, count)
    except InvalidType as error:
        raise InvalidAbi(f"Entry {number}, {name}: {error}.") from None
    is_anonymous = kind is Kind.EVENT and entry.get("anonymous") is True
    return Definition(kind, name, inputs, outputs, is_anonymous)


class _Count:
    """The number of parameters read so far."""

    def __init__(self) -> None:
        self._count = 0

    def add(self) -> None:
        """Count a parameter. Raises: InvalidType if the definition has too many."""
        self._count += 1
        if self._count > MAX_PARAMETERS:
            raise InvalidType(f"more than {MAX_PARAMETERS} parameters")


def _parameters(entries: Any, level: int, count: _Count) -> tuple[Parameter, ...]:
    if not isinstance(entries, list):
        raise InvalidType("its parameters are not an array")
    if level > MAX_DEPTH:
        raise InvalidType(f"more than {MAX_DEPTH} levels of tuples")
    return tuple(_parameter(entry, level, count) for entry in entries)


def _parameter(entry: Any, level: int, count: _Count) -> Parameter:
    count.add()
    if not isinstance(entry, dict):
        raise InvalidType("a parameter is not an object")
    name = entry.get("name") or ""
    if not isinstance(name, str) or (name and not IDENTIFIER.fullmatch(name)):
        raise InvalidType("a parameter has no valid name")
    return Parameter(name, _type(entry, level, count), entry.get("indexed") is True)


def _type(entry: dict[str, Any], level: int, count: _Count) -> Type:
    text = entry.get("type")
    found = _TYPE.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise InvalidType("a parameter has no valid type")
    item: Type
    if found[1] == "tuple":
        item = struct(_parameters(entry.get("components"), level + 1, count))
    else:
        item = elementary(found[1])
    lengths = [int(one) if one else None for one in _BRACKETS.findall(found[2])]
    return arrays(item, lengths)
