"""JSON in and out, quickly where orjson can, exactly where it can't.

orjson refuses lone surrogates and numbers beyond a double, and rounds integers beyond
64 bits and fractions. All of that is JSON, and an id has to be echoed as it came, hence
the standard library reads such bodies once more and keeps the text of such numbers.
"""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

import orjson

from jsonrpc.errors import ParseError

_MAY_BE_JSON = re.compile(rb"\\u[dD][89a-fA-F]|[0-9][eE]|(?<![0-9])[0-9]{300}")
"""What a body has in it that orjson refuses although it is JSON.

A run of digits is looked at from its beginning alone: from every digit of it, a body
of 5 MiB could take more than a second.
"""

_MAX_BRACKETS = 4096
"""Opening ones of a body that orjson refuses and the standard library may read.

That one is held back by Python's recursion limit alone. Where the limit was raised, as
it is by the EVM, brackets in brackets would overflow the stack and end the process.
"""

_SHORT = 18
"""Digits, and a sign, of integers that surely have no more than 64 bits."""


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
    """Return what a body holds; the last of duplicate members counts.

    Raises: ParseError when it is not JSON in UTF-8, or nested too deeply.
    """
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        brackets = body.count(b"[") + body.count(b"{")
        if brackets > _MAX_BRACKETS or _MAY_BE_JSON.search(body) is None:
            raise ParseError from error
    return parse_exactly(body)


def parse_exactly(body: bytes) -> Any:
    """Return what a body holds with its numbers as they were sent.

    Raises: ParseError.
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
    """Return what geth calls a JSON value: string, number, bool, array, object, null."""
    return _KINDS[type(value)]
