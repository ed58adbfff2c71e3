"""Values as fixtures write them."""

from __future__ import annotations

from typing import Any

BIG_INTEGER = "0x:bigint "
"""Prefix that ethereum/tests puts before numbers with more than 256 bits."""


def number(value: Any) -> int:
    """Return a number: hex with 0x, decimal, or a JSON integer; `0x` and "" are 0."""
    if isinstance(value, int):
        return value
    text = value.removeprefix(BIG_INTEGER)
    if text in ("", "0x"):
        return 0
    return int(text, 16) if text[:2] in ("0x", "0X") else int(text)


def data(value: Any) -> bytes:
    """Return bytes of hex, with or without 0x."""
    return bytes.fromhex(value.removeprefix("0x"))


def optional_number(value: Any) -> int | None:
    """Return a number, None for null or an absent field."""
    return None if value is None else number(value)


def optional_data(value: Any) -> bytes | None:
    """Return bytes, None for null or an absent field."""
    return None if value is None else data(value)
