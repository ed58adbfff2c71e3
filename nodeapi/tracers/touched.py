"""The accounts and slots that a transaction touched, before it and after it.

geth's prestate tracer takes a value when it is first touched. Nothing changes before
it is touched, so that this is the value at the transaction's start.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from nodeapi.evm.world import EMPTY_CODE_HASH, Account

if TYPE_CHECKING:
    from eth_typing import Address

    from nodeapi.evm.world import World
    from nodeapi.tracers.watching import Watcher

EMPTY = Account(0, 0, EMPTY_CODE_HASH)
"""An account that is not there, too: https://eips.ethereum.org/EIPS/eip-161."""


@dataclass(slots=True)
class TouchedAccount:
    """An account that a transaction looked at or changed."""

    address: bytes
    before: Account
    after: Account
    slots: list[tuple[int, int, int]] = field(default_factory=list)
    """(slot, value before, value after), by slot."""
    is_destroyed: bool = False
    """Whether it destroyed itself for good, even where that was undone."""


def touched_accounts(watcher: Watcher, world: World) -> list[TouchedAccount]:
    """Return what the world's last transaction touched, by address."""
    replaced, current = world.replaced_accounts(), world.account
    slots, destroyed = watcher.slots, watcher.destroyed
    touched = []
    for address in cast("list[Address]", sorted(watcher.accounts)):
        after = current(address) or EMPTY
        before = replaced.get(address, after) or EMPTY
        account = TouchedAccount(address, before, after)
        if slots.get(address):
            get = world.get_storage
            account.slots = [
                (slot, get(address, slot, False), get(address, slot))
                for slot in sorted(slots[address])
            ]
        if address in destroyed:
            account.is_destroyed = True
        touched.append(account)
    return touched
