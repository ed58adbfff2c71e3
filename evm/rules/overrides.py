"""Prices that a chain config replaces, so that test networks can try other ones.

`gasSchedule.amsterdam` of the config is an object of prices in gas. Its members have the
names of `Prices` in camel case; `store` and `state` are objects of the same kind, and
`constant` has prices by the names of opcodes. `costPerStateByte` sets all of `state` at
once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from evm.opcodes import NUMBERS
from evm.rules.prices import Prices, StatePrices, StorePrices

if TYPE_CHECKING:
    from evm.rules.fork import Fork

OVERRIDABLE = "amsterdam"
"""The fork whose prices can be replaced. Forks after it take them over."""
MAX_PRICE = 2**32
"""The limit of gas of a transaction, about: a higher price could never be paid."""
PER_STATE_BYTE = "costPerStateByte"

_PARTS = ("constant", "store", "state")


class InvalidPrices(ValueError):
    """Raised when prices have another form. The message names the member."""


def with_prices(fork: Fork, given: object) -> Fork:
    """Return a fork with prices from the config. Raises: InvalidPrices.

    given: the object of the fork in `gasSchedule`.
    """
    members = _members(given, "")
    state = _state_prices(fork.prices.state, members)
    constant = _prices(members.pop("constant", {}), "constant.", NUMBERS)
    store = fork.prices.store
    if "store" in members:
        if store is None:
            raise InvalidPrices("store: the fork has no such prices")
        store = store._replace(
            **_named(members.pop("store"), "store.", StorePrices._fields)
        )
    names = [each.name for each in fields(Prices) if each.name not in _PARTS]
    changes: dict[str, Any] = {"store": store, "state": state}
    changes |= _named(members, "", names)
    return replace(fork, prices=replace(fork.prices.changed(**constant), **changes))


def _state_prices(
    prices: StatePrices | None, members: dict[str, object]
) -> StatePrices | None:
    """Return the prices in state gas, and remove their members."""
    cost, given = members.pop(PER_STATE_BYTE, None), members.pop("state", None)
    if cost is not None:
        prices = StatePrices.per_byte(_price(cost, PER_STATE_BYTE))
    if given is None:
        return prices
    if prices is None:
        raise InvalidPrices("state: the fork has no such prices")
    return prices._replace(**_named(given, "state.", StatePrices._fields))


def _named(given: object, place: str, names: Iterable[str]) -> dict[str, int]:
    """Return prices by the names of fields, from an object with names in camel case."""
    fields_by_key = {_camel_case(name): name for name in names}
    found = _prices(given, place, fields_by_key)
    return {fields_by_key[key]: price for key, price in found.items()}


def _prices(given: object, place: str, known: Iterable[str]) -> dict[str, int]:
    """Return the prices of an object, all of whose members are known."""
    members = _members(given, place)
    unknown = sorted(members.keys() - set(known))
    if unknown:
        raise InvalidPrices(f"{place}{unknown[0]} is not known")
    return {key: _price(value, place + key) for key, value in members.items()}


def _members(given: object, place: str) -> dict[str, object]:
    if not isinstance(given, Mapping):
        raise InvalidPrices(f"{place.rstrip('.') or 'it'} is not an object")
    return dict(given)


def _price(value: object, place: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidPrices(f"{place} is {value!r}, not a number")
    if not 0 <= value <= MAX_PRICE:
        raise InvalidPrices(f"{place} is {value}, not between 0 and {MAX_PRICE}")
    return value


def _camel_case(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(other.capitalize() for other in others)
