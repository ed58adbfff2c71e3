"""The original text of parts of a request.

Parsing loses white space, repeated members and the notation of numbers. Texts passed to
these functions must be JSON that `jsonrpc.text` has parsed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import cached_property

_SPACE = re.compile(r"[ \t\n\r]*")

# Numbers stay text: Python refuses integers of more than some thousand digits.
_decode = json.JSONDecoder(parse_int=str, parse_float=str).raw_decode

Text = Callable[[], str | None]
"""Returns a value's text, None if it is nested too deeply to be taken apart."""


def _after_space(text: str, position: int) -> int:
    found = _SPACE.match(text, position)
    assert found is not None  # it may be empty
    return found.end()


def _next(text: str, position: int) -> int:
    """Return the position of the next element or of the closing bracket."""
    position = _after_space(text, position)
    if text[position] == ",":
        position = _after_space(text, position + 1)
    return position


def elements(text: str) -> Iterator[str]:
    """Yield the texts of an array's elements.

    Raises: RecursionError if the array is nested too deeply.
    """
    position = _next(text, _after_space(text, 0) + 1)
    while text[position] != "]":
        _, end = _decode(text, position)
        yield text[position:end]
        position = _next(text, end)


def members(text: str) -> Iterator[tuple[str, str]]:
    """Yield the name of each member of an object, and the text of its value.

    Raises: RecursionError if the object is nested too deeply.
    """
    position = _next(text, _after_space(text, 0) + 1)
    while text[position] != "}":
        name, end = _decode(text, position)
        position = _after_space(text, _after_space(text, end) + 1)
        _, end = _decode(text, position)
        yield name, text[position:end]
        position = _next(text, end)


def argument(message: Text, index: int) -> str | None:
    """Return the text of one of a call's positional arguments, None if it is absent.

    message: the text of the request object. index: from 0.
    """
    try:
        text = message()
        return (
            None if text is None else [*elements(dict(members(text))["params"])][index]
        )
    except RecursionError:
        return None


class BatchSource:
    """The text of a batch, split into calls when a call first needs its text."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    @cached_property
    def _messages(self) -> list[str] | None:
        try:
            return [*elements(self._body.decode())]
        except RecursionError:
            return None

    def message(self, index: int) -> str | None:
        """Return the text of the batch's message with an index, or None."""
        return None if self._messages is None else self._messages[index]
