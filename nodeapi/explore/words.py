"""Values as people read them."""

from __future__ import annotations

from datetime import UTC, datetime

MAX_TEXT = 300
"""Characters of what a contract says, such as why it reverted."""
MAX_DATA = 128
"""Bytes of input, output and logged data."""


def ether(wei: int) -> str:
    """Return an amount, exactly: `1.5 ether`; one below a gwei in wei."""
    sign, amount = "−" if wei < 0 else "", abs(wei)
    if 0 < amount < 10**9:
        return f"{sign}{amount:,} wei"
    text = f"{amount // 10**18:,}.{amount % 10**18:018}".rstrip("0").rstrip(".")
    return f"{sign}{text} ether"


def gwei(wei: int) -> str:
    """Return a price per gas."""
    text = f"{wei // 10**9:,}.{wei % 10**9:09}".rstrip("0").rstrip(".")
    return f"{text} gwei"


def number(value: int) -> str:
    """Return a number with its thousands apart."""
    return f"{value:,}"


def count(value: int, singular: str, plural: str = "") -> str:
    """Return `1 call`, `2,000 calls`."""
    return f"{value:,} {singular if value == 1 else plural or singular + 's'}"


def printable(text: str) -> str:
    """Return what a contract says, without what could change the page's own words.

    Control characters and those that turn the direction of writing are replaced.
    """
    shown = "".join([c if c.isprintable() else "\ufffd" for c in text[:MAX_TEXT]])
    return shown if len(text) <= MAX_TEXT else f"{shown}…"


def hexadecimal(value: bytes) -> str:
    """Return bytes as `0x…`, of long ones the beginning."""
    if len(value) <= MAX_DATA:
        return "0x" + value.hex()
    return f"0x{value[:MAX_DATA].hex()}…"


def brief(address: bytes | None) -> str:
    """Return the two ends of an address."""
    return f"0x{address[:3].hex()}…{address[-2:].hex()}" if address else "nowhere"


def selector(data: bytes) -> str:
    """Return the four bytes that name a function, empty where none is named."""
    return "0x" + data[:4].hex() if len(data) >= 4 else ""


def moment(timestamp: int) -> str:
    """Return a time, given in Unix seconds, in UTC; far ones stay a number."""
    try:
        time = datetime.fromtimestamp(timestamp, UTC)
    except (ValueError, OverflowError, OSError):
        return f"second {timestamp:,}"
    return time.strftime("%Y-%m-%d %H:%M:%S UTC")
