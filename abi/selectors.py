"""Look-up of definitions by selector and topic."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from abi.definitions import Definition, Kind
from abi.table import read_table


class Definitions:
    """Definitions of functions, events and errors, such as those of one contract."""

    def __init__(self, keyed: Iterable[tuple[bytes, Definition]]) -> None:
        """Create the index. keyed: each definition with its selector or topic 0."""
        self._found: dict[tuple[Kind, bytes], tuple[Definition, ...]] = {}
        for key, definition in keyed:
            place = definition.kind, key
            self._found[place] = (*self._found.get(place, ()), definition)

    @classmethod
    def of(cls, definitions: Iterable[Definition]) -> Definitions:
        """Return an index of definitions, whose keys are computed."""
        return cls((one.key, one) for one in definitions)

    def functions(self, selector: bytes) -> tuple[Definition, ...]:
        """Return the functions that four bytes select, the most usual one first."""
        return self._found.get((Kind.FUNCTION, selector), ())

    def all_functions(self) -> list[Definition]:
        """Return all functions."""
        found = self._found.items()
        return [
            one for (kind, _), same in found if kind == Kind.FUNCTION for one in same
        ]

    def errors(self, selector: bytes) -> tuple[Definition, ...]:
        """Return the custom errors that four bytes select."""
        return self._found.get((Kind.ERROR, selector), ())

    def events(self, topic0: bytes) -> tuple[Definition, ...]:
        """Return the events with a topic 0. They differ in their indexed parameters."""
        return self._found.get((Kind.EVENT, topic0), ())


@cache
def well_known() -> Definitions:
    """Return the definitions of the well-known interfaces."""
    return Definitions(read_table())


def function_of(selector: bytes) -> tuple[Definition, ...]:
    """Return the well-known functions that four bytes select."""
    return well_known().functions(selector)


def function_name(selector: bytes) -> str:
    """Return the name of the well-known function with a selector, "" without one.

    The functions with one selector nearly always share a name. If not, there is none.
    """
    names = {one.name for one in function_of(selector)}
    return names.pop() if len(names) == 1 else ""


def event_of(topic0: bytes) -> tuple[Definition, ...]:
    """Return the well-known events with a topic 0."""
    return well_known().events(topic0)
