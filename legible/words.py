"""Formatting of values for pages."""

from __future__ import annotations

from datetime import UTC, datetime

from legible.text import visible

MAX_TEXT = 300
"""Characters shown of a contract's text, such as a revert reason."""
MAX_DATA = 128
"""Bytes shown of input, output and logged data."""


def ether(wei: int) -> str:
    """Format an amount exactly: `1.5 ether`, or `12 wei` if it is below one gwei."""
    sign, amount = "−" if wei < 0 else "", abs(wei)
    if 0 < amount < 10**9:
        return f"{sign}{amount:,} wei"
    text = f"{amount // 10**18:,}.{amount % 10**18:018}".rstrip("0").rstrip(".")
    return f"{sign}{text} ether"


def gwei(wei: int) -> str:
    """Return an exact price per gas: `1.5 gwei`."""
    text = f"{wei // 10**9:,}.{wei % 10**9:09}".rstrip("0").rstrip(".")
    return f"{text} gwei"


def short_gwei(wei: int) -> str:
    """Return a rounded price per gas.

    Three decimals from one gwei on, else three digits, prices below 0.0001 gwei in wei:
    `1.235 gwei`, `0.00105 gwei`, `7 wei`.
    """
    if wei < 10**5:
        return f"{wei:,} wei"
    return f"{wei / 10**9:{',.3f' if wei >= 10**9 else '.3g'}} gwei"


def age(seconds: float) -> str:
    """Return a duration in its largest whole unit: `12 s`, `3 min`, `5 h`, `2 d`.

    Negative durations, which differing clocks cause, are `0 s`. The script of the pages
    (static/portcullis/live.js) has the same units.
    """
    rest = max(0, int(seconds))
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if rest >= length:
            return f"{rest // length:,} {unit}"
    return f"{rest} s"


def number(value: int) -> str:
    """Return a number with thousands separators: `1,234`."""
    return f"{value:,}"


def count(value: int, singular: str, plural: str = "") -> str:
    """Return a number with its noun: `1 call`, `2,000 calls`."""
    return f"{value:,} {singular if value == 1 else plural or singular + 's'}"


def printable(text: str) -> str:
    """Return a contract's text on one line, with hidden characters as `⟨U+202E⟩`.

    Line breaks and tabs become spaces.
    """
    shown = visible(" ".join(text[:MAX_TEXT].split()))
    return shown if len(text) <= MAX_TEXT else f"{shown}…"


def hexadecimal(value: bytes) -> str:
    """Return bytes as `0x…`, shortened to MAX_DATA bytes."""
    if len(value) <= MAX_DATA:
        return "0x" + value.hex()
    return f"0x{value[:MAX_DATA].hex()}…"


def shortened(text: str) -> str:
    """Return the beginning and end of an address or hash: `0x123456…abcd`."""
    return f"{text[:8]}…{text[-4:]}"


def selector(data: bytes) -> str:
    """Return the function selector of an input, "" if the input is shorter."""
    return "0x" + data[:4].hex() if len(data) >= 4 else ""


def moment(timestamp: int) -> str:
    """Return Unix seconds as a time in UTC; years beyond 9999 stay a number."""
    try:
        time = datetime.fromtimestamp(timestamp, UTC)
    except (ValueError, OverflowError, OSError):
        return f"second {timestamp:,}"
    return time.strftime("%Y-%m-%d %H:%M:%S UTC")
