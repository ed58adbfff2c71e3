"""The environment: the only place where the project reads it."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

BASE_DIR = Path(__file__).resolve().parent.parent


def text(name: str, default: str = "") -> str:
    """Return an environment variable, the default when it is unset or empty."""
    return os.environ.get(name) or default


def integer(name: str, default: int) -> int:
    """Return an environment variable as an integer.

    Raises: ValueError naming the variable when it is set to something else.
    """
    value = text(name)
    if not value:
        return default
    try:
        return int(value)
    except ValueError:
        raise ValueError(f"{name} must be an integer, not {value!r}") from None


def boolean(name: str, default: bool) -> bool:
    """Return an environment variable as a truth value: 1, true, yes, on are true."""
    value = text(name)
    return value.lower() in {"1", "true", "yes", "on"} if value else default


def given(**readers: Callable[[str], Any]) -> dict[str, Any]:
    """Return the variables that are set, read by the function of their keyword.

    Raises: ValueError naming the variable whose value can't be read so.
    """
    found = {}
    for name, reader in readers.items():
        if value := text(name):
            try:
                found[name] = reader(value)
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from None
    return found


def var_dir() -> Path:
    """Return the folder of everything that is written while running."""
    return Path(text("VAR_DIR", str(BASE_DIR / "var"))).resolve()
