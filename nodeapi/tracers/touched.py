"""The accounts and slots that a transaction touched, before it and after it.

geth's prestate tracer takes a value when it is first touched. Nothing changes before
it is touched, so that this is the value at the transaction's start.
"""

from __future__ import annotations

from collections.abc import Sequence
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


def touched_accounts(watcher: Watcher, world: World) -> list[TouchedAccount]:
    """Return what the world's last transaction touched, by address."""
    replaced, current = world.replaced_accounts(), world.account
    slots, destroyed = watcher.slots, watcher.destroyed
    change = world.storage_change
    touched = []
    for address in cast("list[Address]", sorted(watcher.accounts)):
        after = current(address) or EMPTY
        before = replaced.get(address, after) or EMPTY
        used = slots.get(address)
        values: Sequence[Slot] = ()
        if used:
            values = [(slot, *change(address, slot)) for slot in sorted(used)]
        touched.append(
            TouchedAccount(address, before, after, values, address in destroyed)
        )
    return touched
