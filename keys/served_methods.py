"""The methods that the service serves, for allowlists and for suggestions.

Methods belong to a package above this one, which registers a function that returns them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import get_close_matches

_LIKENESS = 0.75
"""Least similarity of a suggestion, between 0 and 1."""


@dataclass(frozen=True, slots=True)
class ServedMethod:
    """A method with a sentence about it."""

    name: str
    summary: str

    @property
    def namespace(self) -> str:
        """The part of the name before the underscore."""
        return self.name.partition("_")[0]


_sources: list[Callable[[], Iterable[ServedMethod]]] = []


def register(source: Callable[[], Iterable[ServedMethod]]) -> None:
    """Add a function that returns served methods. It is called when they are needed."""
    _sources.append(source)


def served_methods() -> dict[str, ServedMethod]:
    """Return the methods by name, in the order of their names."""
    found = {method.name: method for source in _sources for method in source()}
    return dict(sorted(found.items()))


def similar_method(name: str, served: Iterable[str]) -> str:
    """Return the served method whose name is most similar, "" if none is similar."""
    known = {method.lower(): method for method in served}
    wanted = name.strip().lower().replace(".", "_")
    if wanted in known:
        return known[wanted]
    found = get_close_matches(wanted[:200], known, n=1, cutoff=_LIKENESS)
    return known[found[0]] if found else ""
