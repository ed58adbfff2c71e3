"""Formatting of decoded values as text."""

from __future__ import annotations

from legible.text import visible
from nodeapi.abi.values import Argument
from nodeapi.addresses import checksummed

MAX_TEXT = 300
"""Characters shown of a text."""

MAX_BYTES = 128
"""Bytes shown of a byte string."""

_UNLIMITED = frozenset(2**bits - 1 for bits in (96, 160, 256))
"""The largest amounts, by which tokens grant an allowance without a limit."""

_AMOUNTS = frozenset({"amount", "value", "wad", "added"})


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
            cut = visible(" ".join(value[: MAX_TEXT + 1].split())[:MAX_TEXT])
            return f"“{cut}{'…' if len(value) > MAX_TEXT else ''}”"
        case bytes(value) if argument.type == "address" and len(value) == 20:
            return checksummed(value)
        case bytes(value):
            if len(value) <= MAX_BYTES:
                return f"0x{value.hex()}"
            return f"0x{value[:MAX_BYTES].hex()}… ({len(value):,} bytes)"
    return ""


def _remark(argument: Argument, value: int) -> str:
    is_amount = argument.name in _AMOUNTS and argument.type.startswith("uint")
    if not is_amount or value not in _UNLIMITED:
        return ""
    bits = int(argument.type.removeprefix("uint"))
    return " (unlimited)" if value == 2**bits - 1 or bits == 256 else ""
