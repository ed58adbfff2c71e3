"""Numbers formatted for display."""

from __future__ import annotations

_THIN = "\N{NARROW NO-BREAK SPACE}"

_ROUNDED = 0.9995
"""From this share of a unit, rounding to three digits gives 1 of the unit (1 k, not
1000)."""

_LARGE = ((10**9, "G"), (10**6, "M"), (10**3, "k"))
_LONG = (
    (86_400_000_000, "d"),
    (3_600_000_000, "h"),
    (60_000_000, "min"),
    (1_000_000, "s"),
    (1_000, "ms"),
    (1, "µs"),
)


def short(value: float) -> str:
    """Format a count with about three digits: 950, 1.2 k, 34 M."""
    for size, letter in _LARGE:
        if value >= _ROUNDED * size:
            return f"{_digits(value / size)}{_THIN}{letter}"
    return _digits(value)


def size(count: float) -> str:
    """Format a number of bytes with about three digits: 950 B, 1.2 kB."""
    text = short(count)
    return f"{text}B" if _THIN in text else f"{text}{_THIN}B"


def duration(microseconds: float | None) -> str:
    """Format a duration with about three digits and its unit. None gives a dash."""
    if microseconds is None:
        return "–"
    for size, unit in _LONG:
        if microseconds >= _ROUNDED * size:
            return f"{_digits(microseconds / size)}{_THIN}{unit}"
    return f"0{_THIN}µs" if not microseconds else f"<{_THIN}1{_THIN}µs"


def share(part: float, whole: float) -> str:
    """Format a share in percent. A small positive share is not rounded to 0 %."""
    if not part or not whole:
        return "0%"
    percent = 100 * part / whole
    return (
        "< 0.01%"
        if percent < 0.01
        else f"{percent:.2f}%"
        if percent < 10
        else f"{percent:.1f}%"
    )


def _digits(value: float) -> str:
    """Format a number with at most three digits, without trailing zeros."""
    if value >= 100:
        return f"{value:.0f}"
    text = f"{value:.1f}" if value >= 10 else f"{value:.2f}"
    return text.rstrip("0").rstrip(".")
