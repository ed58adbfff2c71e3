"""A state with changes on top."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from eth_typing import Address, Hash32

    from evm.changes import AccountValue, Changes
    from evm.world import StateReader


class ChangedState:
    """A state with changes applied to it. Changes that are added later apply as well."""

    def __init__(self, before: StateReader, changes: Changes) -> None:
        self.before = before
        self.changes = changes

    def account(self, address: Address) -> AccountValue | None:
        """Return an account, or None if it does not exist."""
        if address in self.changes.accounts:
            return self.changes.accounts[address]
        return self.before.account(address)

    def storage(self, address: Address, slot: int) -> int:
        """Return the value of a storage slot, zero if it was never written."""
        value = self.changes.storage.get(address, {}).get(slot)
        return self.before.storage(address, slot) if value is None else value

    def live_slots(self, address: Address) -> Iterable[int]:
        """Return the slots of an account that are not zero."""
        values = self.changes.storage.get(address, {})
        kept = [s for s in self.before.live_slots(address) if s not in values]
        return kept + [slot for slot, value in values.items() if value]

    def code(self, code_hash: Hash32) -> bytes:
        """Return the contract code with this hash."""
        code = self.changes.codes.get(code_hash)
        return self.before.code(code_hash) if code is None else code
