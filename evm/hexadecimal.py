"""Bytes and numbers as hexadecimal text with `0x`, as JSON-RPC has them."""

from __future__ import annotations


def to_hex(value: bytes | memoryview) -> str:
    """Return bytes as text: `0x`, `0x00ff`. Columns of tables may be a memoryview."""
    return f"0x{value.hex()}"


def to_hex_or_none(value: bytes | memoryview | None) -> str | None:
    """Return bytes as text, and None for None."""
    return None if value is None else to_hex(value)


def quantity_or_none(value: int | None) -> str | None:
    """Return a number as text: `0x0`, `0x1b4`; and None for None."""
    return None if value is None else hex(value)


def from_hex(text: str) -> bytes:
    """Return the bytes of a text that begins with `0x`. Raises: ValueError."""
    return bytes.fromhex(text[2:])
