"""Parsing and encoding of JSON: with orjson if possible, exactly otherwise.

orjson rejects lone surrogates and numbers beyond a double. It rounds integers beyond 64
bits and fractions. All of them are valid JSON, and an id has to be returned exactly.
Therefore the standard library parses such bodies again, and keeps the text of such
numbers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NoReturn

import orjson

from jsonrpc.errors import ParseError

_MAY_BE_JSON = re.compile(rb"\\u[dD][89a-fA-F]|[0-9][eE]|(?<![0-9])[0-9]{300}")
"""Matches valid JSON that orjson rejects.

A run of digits is only matched from its beginning. Otherwise, a body of 5 MiB could
take more than a second."""

_MAX_BRACKETS = 4096
"""Maximum number of opening brackets in a body that the standard library parses after
orjson has rejected it.

Its nesting is only bounded by Python's recursion limit. The EVM raises this limit, so
deep nesting would overflow the stack and crash the process."""

_SHORT = 18
"""Length of integers, with sign, that always fit into 64 bits."""


_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
"""Matches surrogates in a str. They are always lone, because parsers join pairs."""


class Number:
    """A JSON number that is kept as text: a fraction, or an integer beyond 64 bits."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _read_integer(text: str) -> int | Number:
    return int(text) if len(text) <= _SHORT else Number(text)


_exact_decoder = json.JSONDecoder(
    parse_int=_read_integer, parse_float=Number, parse_constant=_refuse_constant
)


def parse(body: bytes) -> Any:
    """Parse JSON. Of duplicate members, the last one is used.

    Raises: ParseError if the body is not JSON in UTF-8, or is nested too deeply.
    """
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        brackets = body.count(b"[") + body.count(b"{")
        if brackets > _MAX_BRACKETS or _MAY_BE_JSON.search(body) is None:
            raise ParseError from error
    return parse_exactly(body)


def parse_exactly(body: bytes) -> Any:
    """Parse JSON, keeping the original text of numbers.

    Raises: ParseError if the body is not JSON in UTF-8, or is nested too deeply.
    """
    try:
        return _exact_decoder.decode(body.decode())
    except (ValueError, RecursionError) as error:
        raise ParseError from error


def dump(value: object) -> bytes:
    """Return a value as compact JSON."""
    try:
        return orjson.dumps(value)
    except TypeError:  # a lone surrogate, which can only be sent escaped
        return json.dumps(value, separators=(",", ":")).encode()


def has_lone_surrogate(value: Any) -> bool:
    r"""Return whether a string or a member name in a JSON value has a lone surrogate.

    JSON can contain one as an escape, `"\ud800"`. It is half of a character's UTF-16
    encoding and can't be encoded as UTF-8.

    value: a result of `parse`.
    """
    try:
        orjson.dumps(value, default=str)
    except TypeError:  # for a lone surrogate; for deep nesting, too
        return any(_LONE_SURROGATE.search(text) for text in _strings(value))
    return False


def _strings(value: Any) -> Iterator[str]:
    pending = [value]
    while pending:
        found = pending.pop()
        if isinstance(found, str):
            yield found
        elif isinstance(found, list):
            pending += found
        elif isinstance(found, dict):
            pending += found
            pending += found.values()


_KINDS = {
    str: "string",
    int: "number",
    float: "number",
    Number: "number",
    bool: "bool",
    list: "array",
    dict: "object",
    type(None): "null",
}


def kind(value: object) -> str:
    """Return geth's name of a JSON type: string, number, bool, array, object, null."""
    return _KINDS[type(value)]
