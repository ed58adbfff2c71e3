"""The environment: the only place where the project reads it."""

import os
from collections.abc import Callable
from math import inf
from pathlib import Path
from typing import Any, TypeVar

Number = TypeVar("Number", int, float)

BASE_DIR = Path(__file__).resolve().parent.parent


class InvalidSetting(ValueError):
    """Raised when an environment variable can't be read as what it must be."""


def text(name: str, default: str = "") -> str:
    """Return an environment variable, the default when it is unset or empty."""
    return os.environ.get(name) or default


def integer(name: str, default: int) -> int:
    """Return an environment variable as an integer.

    Raises: InvalidSetting naming the variable when it is set to something else.
    """
    value = text(name)
    if not value:
        return default
    try:
        return int(value)
    except ValueError:
        raise InvalidSetting(f"{name} must be an integer, not {value!r}") from None


def boolean(name: str, default: bool) -> bool:
    """Return an environment variable as a truth value: 1, true, yes, on are true."""
    value = text(name)
    return value.lower() in {"1", "true", "yes", "on"} if value else default


def words(name: str, default: str = "") -> list[str]:
    """Return an environment variable's words, which commas separate."""
    return [word for part in text(name, default).split(",") if (word := part.strip())]


def one_of(name: str, default: str, *others: str) -> str:
    """Return an environment variable that has one of few values.

    Raises: InvalidSetting naming the variable when it is set to something else.
    """
    value = text(name, default)
    if value not in (default, *others):
        known = ", ".join((default, *others))
        raise InvalidSetting(f"{name} must be one of {known}, not {value!r}")
    return value


def count(value: str) -> int:
    """Read a whole number above 0. Raises: ValueError, like the next two."""
    return _above(0, int(value))


def size(value: str) -> int:
    """Read a whole number, 0 among them."""
    return _above(-1, int(value))


def duration(value: str) -> float:
    """Read a number above 0 of seconds, or of days."""
    return _above(0, float(value))


def _above(bound: int, number: Number) -> Number:
    """Return a number if it is finite and above a bound."""
    if not bound < number < inf:
        raise ValueError(f"{number} is no number above {bound}")
    return number


def given(**readers: Callable[[str], Any]) -> dict[str, Any]:
    """Return the variables that are set, read by the function of their keyword.

    Raises: InvalidSetting naming the variable whose value can't be read so.
    """
    found = {}
    for name, reader in readers.items():
        if value := text(name):
            try:
                found[name] = reader(value)
            except ValueError as error:
                raise InvalidSetting(f"{name}: {error}") from None
    return found


def var_dir() -> Path:
    """Return the folder of everything that is written while running."""
    return Path(text("VAR_DIR", str(BASE_DIR / "var"))).resolve()
