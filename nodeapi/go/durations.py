"""Durations as Go prints them."""

from __future__ import annotations


def go_duration(seconds: float) -> str:
    """Return a duration up to the microsecond: `5s`, `300ms`, `1m30.5s`."""
    microseconds = round(seconds * 10**6)
    if microseconds < 1000:
        return f"{microseconds}µs" if microseconds else "0s"
    if microseconds < 10**6:
        return f"{microseconds / 1000:g}ms"
    minutes, rest = divmod(microseconds, 60 * 10**6)
    hours, minutes = divmod(minutes, 60)
    text = f"{rest / 10**6:.6f}".rstrip("0").rstrip(".") + "s"
    if hours:
        return f"{hours}h{minutes}m{text}"
    return f"{minutes}m{text}" if minutes else text
