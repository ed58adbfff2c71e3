"""The accounts and slots that a transaction touched, before it and after it.

geth's prestate tracer takes a value when it is first touched. Nothing changes before
it is touched, so that this is the value at the transaction's start.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from nodeapi.evm.world import EMPTY_CODE_HASH, Account

if TYPE_CHECKING:
    from eth_typing import Address

    from nodeapi.evm.world import World
    from nodeapi.tracers.watching import Watcher

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
class Touched:
    """What a transaction touched, as it was found right after its end."""

    after: dict[Address, Account | None]
    """The accounts, None for those that are not there."""
    replaced: dict[Address, Account | None]
    """Those that were changed, as they were before."""
    slots: dict[Address, list[Slot]]
    """By contract, in no order."""
    destroyed: Container[bytes]

    def accounts(self) -> list[TouchedAccount]:
        """Return the accounts with what became of them, by address."""
        replaced, slots, destroyed = self.replaced, self.slots, self.destroyed
        touched = []
        for address, account in sorted(self.after.items()):
            after = account or EMPTY
            before = replaced.get(address, after) or EMPTY
            values = slots.get(address, ())
            if values:
                values = sorted(values)
            touched.append(
                TouchedAccount(address, before, after, values, address in destroyed)
            )
        return touched


def find_touched(watcher: Watcher, world: World) -> Touched:
    """Find what the world's last transaction touched, no more than has to be done now."""
    accounts = cast("set[Address]", watcher.accounts)
    slots = cast("dict[Address, set[int]]", watcher.slots)
    return Touched(
        {address: world.account(address) for address in accounts},
        world.replaced_accounts(),
        {
            address: world.storage_changes(address, used)
            for address, used in slots.items()
        },
        watcher.destroyed,
    )
