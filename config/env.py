"""Environment variables: how one is declared, read and checked.

No other module of the project reads settings from the environment.
`config/variables/` declares the variables.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from difflib import get_close_matches
from math import inf
from pathlib import Path
from typing import Any, Generic, TypeVar

T = TypeVar("T")

BASE_DIR = Path(__file__).resolve().parent.parent

_RESEMBLANCE = 0.9
"""Similarity from which a name counts as misspelt: about one letter in ten."""


class InvalidSetting(ValueError):
    """Raised when the value of an environment variable can't be parsed."""


@dataclass(frozen=True, slots=True)
class Variable(Generic[T]):
    """An environment variable with its type, its default and its documentation."""

    name: str
    parse: Callable[[str], T]
    """Converts the text of the variable. Raises ValueError: "must be …"."""
    default: T
    """The value if the variable is unset or empty."""
    meaning: str
    """Markdown, one or more sentences, with the unit and the reason for the default."""
    default_in_words: str = ""
    """Markdown text that describes the default, if its value alone is unclear."""

    def value(self) -> T:
        """Return the parsed value, or the default if the variable is unset or empty.

        Raises: InvalidSetting with the variable's name.
        """
        given = os.environ.get(self.name)
        if not given:
            return self.default
        try:
            return self.parse(given)
        except ValueError as error:
            raise InvalidSetting(f"{self.name} {error}") from None


@dataclass(frozen=True, slots=True)
class Group:
    """Variables that are documented together, in the order of their declaration."""

    title: str
    variables: list[Variable[Any]] = field(default_factory=list)

    def variable(
        self,
        name: str,
        parse: Callable[[str], T],
        default: T,
        meaning: str,
        default_in_words: str = "",
    ) -> Variable[T]:
        """Declare a variable of this group. The parameters are those of `Variable`."""
        declared = Variable(name, parse, default, meaning, default_in_words)
        self.variables.append(declared)
        return declared


def misspelt(names: Collection[str]) -> list[tuple[str, str]]:
    """Return environment variables that resemble one of the names, with that name.

    names: names of settings. A variable that is a setting is not returned.
    """
    found = []
    for given in sorted(os.environ.keys() - set(names)):
        for meant in get_close_matches(given, names, n=1, cutoff=_RESEMBLANCE):
            found.append((given, meant))
    return found


def text(value: str) -> str:
    """Return the value unchanged."""
    return value


_SWITCH = {
    **dict.fromkeys(("1", "true", "yes", "on"), True),
    **dict.fromkeys(("0", "false", "no", "off"), False),
}


def boolean(value: str) -> bool:
    """Return True for 1, true, yes and on, False for 0, false, no and off, in any case.

    Raises: ValueError for other text.
    """
    try:
        return _SWITCH[value.strip().lower()]
    except KeyError:
        raise ValueError(f"must be on or off, not {value!r}") from None


def words(value: str) -> list[str]:
    """Return the words between commas, without surrounding spaces and empty words."""
    return [word for part in value.split(",") if (word := part.strip())]


def integer(value: str) -> int:
    """Parse an integer of any sign. Raises: ValueError for other text."""
    try:
        return int(value)
    except ValueError:
        raise ValueError(f"must be an integer, not {value!r}") from None


def count(value: str) -> int:
    """Parse an integer above 0. Raises: ValueError for other text."""
    number = integer(value)
    if number < 1:
        raise ValueError(f"must be 1 or more, not {number}")
    return number


def size(value: str) -> int:
    """Parse an integer of at least 0. Raises: ValueError for other text."""
    number = integer(value)
    if number < 0:
        raise ValueError(f"must be 0 or more, not {number}")
    return number


def duration(value: str) -> float:
    """Parse a finite number above 0. Raises: ValueError for other text."""
    try:
        number = float(value)
    except ValueError:
        number = 0.0
    if not 0 < number < inf:
        raise ValueError(f"must be a number above 0, not {value!r}")
    return number


class Choice:
    """A parser that accepts only the given values."""

    def __init__(self, *values: str) -> None:
        self.values = values

    def __call__(self, value: str) -> str:
        """Return the value unchanged. Raises: ValueError if it is not accepted."""
        if value not in self.values:
            raise ValueError(f"must be one of {', '.join(self.values)}, not {value!r}")
        return value
