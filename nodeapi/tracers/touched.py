"""The accounts and slots that a transaction touched, before it and after it.

geth's prestate tracer takes a value when it is first touched. Nothing changes before
it is touched, so that this is the value at the transaction's start.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from nodeapi.evm.world import EMPTY_CODE_HASH, Account

if TYPE_CHECKING:
    from eth_typing import Address

    from nodeapi.evm.world import Journal, Originals, World

EMPTY = Account(0, 0, EMPTY_CODE_HASH)
"""An account that is not there, too: https://eips.ethereum.org/EIPS/eip-161."""

Slot = tuple[int, int, int]
"""Slot, its value before, its value after."""


@dataclass(slots=True)
class TouchedAccount:
    """An account that a transaction looked at or changed."""

    address: bytes
    before: Account
    after: Account
    slots: Sequence[Slot] = ()
    """In their order."""
    is_destroyed: bool = False
    """Whether it destroyed itself for good, even where that was undone."""


@dataclass(slots=True)
class Trail:
    """What a transaction left of what it touched: all that has to be kept at its end."""

    accounts: Collection[bytes]
    """Whatever it changed is among them."""
    slots: Mapping[bytes, Collection[int]]
    """By contract."""
    destroyed: Container[bytes]
    journal: Journal
    originals: Originals


class Rewind:
    """Goes back through the transactions of a block, the last one first.

    What a transaction made of an account is what the next one found there, which its
    own trail has; so nothing need be looked up while transactions are executed.
    """

    def __init__(self, world: World) -> None:
        """Begin where the world stands: right after the last transaction's end."""
        self._world = world
        self._accounts: dict[Address, Account | None] = {}
        self._slots: Originals = {}

    def undo(self, trail: Trail) -> None:
        """Go back to before a transaction."""
        self._accounts.update(self._world.replaced_accounts(trail.journal))
        self._slots.update(trail.originals)

    def touched(self, trail: Trail) -> list[TouchedAccount]:
        """Do the same, and return the accounts that it touched, by address."""
        world, later, slots = self._world, self._accounts, trail.slots
        replaced = world.replaced_accounts(trail.journal)
        touched = []
        for address in cast("list[Address]", sorted(trail.accounts)):
            account = later[address] if address in later else world.account(address)
            before = after = account or EMPTY
            if address in replaced:
                before = replaced[address] or EMPTY
            used = slots.get(address)
            values = self._values(address, used, trail.originals) if used else ()
            is_destroyed = address in trail.destroyed
            touched.append(TouchedAccount(address, before, after, values, is_destroyed))
        later.update(replaced)
        self._slots.update(trail.originals)
        return touched

    def _values(
        self, address: Address, used: Iterable[int], originals: Originals
    ) -> list[Slot]:
        world, later = self._world, self._slots
        values = []
        for slot in sorted(used):
            key = address, slot
            after = later[key] if key in later else world.get_storage(address, slot)
            values.append((slot, originals.get(key, after), after))
        return values
