"""Decoded arguments of calls, errors and logs, as lines of a list.

Tuples, arrays and calls inside calls are lines too, followed by their members, items and
arguments on the next level.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from abi.addresses import checksummed
from abi.batches import AbiOf, decode_batch
from abi.decoding import DecodedCall, decode_call, decode_error
from abi.selectors import Definitions
from abi.values import Argument
from legible import words
from legible.text import visible

MAX_LEVEL = 4
"""Levels that are indented. Deeper values are on the last one."""

MAX_LINES = 100
"""Lines of a transaction's arguments on its page."""

_INNER_VALUES = 20
"""Decoded values of a call inside an argument, of which only the name is shown."""

_MAX_TEXT = 300
"""Characters shown of a text."""

_MAX_BYTES = 128
"""Bytes shown of a byte string."""

_UNLIMITED = frozenset(2**bits - 1 for bits in (96, 160, 256))
"""The largest amounts, by which tokens grant an allowance without a limit."""

_AMOUNTS = frozenset({"amount", "value", "wad", "added"})


@dataclass(frozen=True, slots=True)
class ArgumentLine:
    """A value, formatted as text."""

    level: int
    name: str
    """The parameter's name, or an item's index, such as `[0]`."""
    type: str
    text: str
    address: str
    """With a checksum, if the value is one; else empty."""


@dataclass(frozen=True, slots=True)
class ArgumentLines:
    """The first lines of some arguments. hidden: whether there are further ones."""

    lines: list[ArgumentLine]
    hidden: bool


@dataclass(frozen=True, slots=True)
class CallText:
    """A decoded call or custom error, formatted as text."""

    name: str
    signature: str
    interfaces: str
    """Names of well-known interfaces, separated by commas; empty if uploaded."""
    arguments: ArgumentLines
    trailing: str
    """The number of bytes after the arguments; empty if there are none."""


def call_text(
    data: bytes, to: bytes | None, abi_of: AbiOf, most: int
) -> CallText | None:
    """Decode the input of a call, None if its function is unknown.

    to: the called contract. most: maximum number of lines.
    """
    return _decoded(decode_batch(data, to, abi_of, most), most)


def error_text(data: bytes, abi: Definitions | None, most: int) -> CallText | None:
    """Decode the data of a custom error, None if it is unknown."""
    return _decoded(decode_error(data, abi, most), most)


def _decoded(call: DecodedCall | None, most: int) -> CallText | None:
    if call is None:
        return None
    return CallText(
        name=call.name,
        signature=call.signature,
        interfaces=", ".join(call.interfaces),
        arguments=argument_lines(call.arguments, call.is_complete, most),
        trailing=words.count(call.trailing, "byte") if call.trailing else "",
    )


def argument_lines(
    arguments: Sequence[Argument], is_complete: bool, most: int
) -> ArgumentLines:
    """Return the lines of decoded arguments.

    is_complete: whether all of them were decoded. most: maximum number of lines.
    """
    lines = _lines(arguments, 0)
    shown = list(islice(lines, most))
    return ArgumentLines(shown, not is_complete or next(lines, None) is not None)


def _lines(arguments: Sequence[Argument], level: int) -> Iterator[ArgumentLine]:
    for number, argument in enumerate(arguments):
        name = argument.name or (f"[{number}]" if level else f"#{number}")
        value = argument.value
        is_address = argument.type == "address" and isinstance(value, bytes)
        yield ArgumentLine(
            level=min(level, MAX_LEVEL),
            name=name,
            type=argument.type,
            text=_text(argument),
            address=checksummed(value)
            if is_address and isinstance(value, bytes) and not argument.is_hash
            else "",
        )
        if isinstance(value, tuple):
            yield from _lines(value, level + 1)
        elif argument.inner is not None:
            yield from _lines(argument.inner.arguments, level + 1)


def _text(argument: Argument) -> str:
    value = argument.value
    if argument.is_hash and isinstance(value, bytes):
        return f"0x{value.hex()} (its hash)"
    if isinstance(value, tuple):
        is_array = argument.type.endswith("]")
        return words.count(argument.length, "item") if is_array else ""
    if argument.inner is not None:
        return argument.inner.signature
    text = value_text(argument)
    if argument.type == "bytes" and isinstance(value, bytes):
        inner = decode_call(value, most=_INNER_VALUES)
        return f"{inner.signature}: {text}" if inner is not None else text
    return text


def value_text(argument: Argument) -> str:
    """Return an elementary value on one line; "" for a tuple or an array.

    Numbers have thousands separators, addresses a checksum. Texts are quoted, and their
    hidden characters are replaced by their numbers. Long texts and bytes are cut.
    """
    match argument.value:
        case bool(value):
            return "true" if value else "false"
        case int(value):
            return f"{value:,}{_remark(argument, value)}"
        case str(value):
            cut = visible(" ".join(value[: _MAX_TEXT + 1].split())[:_MAX_TEXT])
            return f"“{cut}{'…' if len(value) > _MAX_TEXT else ''}”"
        case bytes(value) if argument.type == "address" and len(value) == 20:
            return checksummed(value)
        case bytes(value):
            if len(value) <= _MAX_BYTES:
                return f"0x{value.hex()}"
            return f"0x{value[:_MAX_BYTES].hex()}… ({len(value):,} bytes)"
    return ""


def _remark(argument: Argument, value: int) -> str:
    is_amount = argument.name in _AMOUNTS and argument.type.startswith("uint")
    if not is_amount or value not in _UNLIMITED:
        return ""
    bits = int(argument.type.removeprefix("uint"))
    return " (unlimited)" if value == 2**bits - 1 or bits == 256 else ""
