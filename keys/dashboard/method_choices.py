"""The choice of methods for an allowlist, with search."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from keys.served_methods import ServedMethod, served_methods


@dataclass(frozen=True, slots=True)
class MethodChoice:
    """A method in the form. is_served: False for a name that is only on the list."""

    name: str
    summary: str
    is_chosen: bool
    is_served: bool = True


@dataclass(frozen=True, slots=True)
class MethodChoices:
    """The methods in the form: the chosen ones first, then those that were searched.

    search: the searched text; "" shows all methods.
    """

    search: str
    choices: list[MethodChoice]

    @property
    def chosen(self) -> list[str]:
        """The names of the chosen methods."""
        return [one.name for one in self.choices if one.is_chosen]


def method_choices(chosen: Iterable[str], search: str = "") -> MethodChoices:
    """Return the choices of a form. chosen: names, which need not be served."""
    served = served_methods()
    names = list(dict.fromkeys(chosen))
    choices = [
        MethodChoice(name, served[name].summary, True)
        if name in served
        else MethodChoice(name, "", True, is_served=False)
        for name in names
    ]
    choices += [
        MethodChoice(method.name, method.summary, False)
        for method in served.values()
        if method.name not in names and _matches(method, search)
    ]
    return MethodChoices(search, choices)


def _matches(method: ServedMethod, search: str) -> bool:
    """Return whether a method contains every searched word, in any case."""
    text = f"{method.name} {method.summary}".lower()
    return all(word in text for word in search.lower().split())
