"""A state held in memory, for generated chains."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eth_typing import Address, Hash32

from evm.changes import AccountValue, Changes
from evm.state_trie import StateTrie
from evm.trie import NodeCache

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

_NODES_CACHED = 500_000


class MemoryState:
    """The state after a block, with its trie nodes.

    It provides both the values for a `World` and the nodes for its tries.
    """

    def __init__(self) -> None:
        self.root: Hash32 | None = None
        """The state root, or None while there is no account."""
        self.accounts: dict[Address, AccountValue] = {}
        self.slots: dict[Address, dict[int, int]] = {}
        self.codes: dict[Hash32, bytes] = {}
        self._nodes: dict[bytes, dict[bytes, bytes]] = {}
        self._cache = NodeCache(_NODES_CACHED)

    def account(self, address: Address) -> AccountValue | None:
        """Return an account, or None if it does not exist."""
        return self.accounts.get(address)

    def storage(self, address: Address, slot: int) -> int:
        """Return the value of a storage slot, zero if it was never written."""
        return self.slots.get(address, {}).get(slot, 0)

    def live_slots(self, address: Address) -> Iterable[int]:
        """Return the slots of an account that are not zero."""
        return self.slots.get(address, {}).keys()

    def code(self, code_hash: Hash32) -> bytes:
        """Return the contract code with this hash, which must exist."""
        return self.codes[code_hash]

    def nodes(
        self, owner: bytes, paths: Collection[bytes], likely: Collection[bytes] = ()
    ) -> Mapping[bytes, bytes]:
        """Return the trie nodes at these paths. Absent nodes are omitted."""
        rows = self._nodes.get(owner, {})
        return {path: rows[path] for path in {*paths, *likely} if path in rows}

    def root_after(self, changes: Changes) -> Hash32:
        """Return the state root after the changes, without applying them."""
        return self.open_trie().apply(changes)

    def apply(self, changes: Changes) -> Hash32:
        """Apply changes to the state, and return its new root."""
        trie = self.open_trie()
        return self.adopt(changes, trie, trie.apply(changes))

    def adopt(self, changes: Changes, trie: StateTrie, root: Hash32) -> Hash32:
        """Apply changes whose tries and root have been computed already."""
        self.root = root
        for owner, changed in trie.dirty_nodes().items():
            rows = self._nodes.setdefault(owner, {})
            for path, node in changed.items():
                if node is None:
                    rows.pop(path, None)
                else:
                    rows[path] = node
        trie.mark_clean()
        for address, account in changes.accounts.items():
            if account is None:
                self.accounts.pop(address, None)
            else:
                self.accounts[address] = account
        for address, values in changes.storage.items():
            slots = self.slots.setdefault(address, {})
            for slot, value in values.items():
                if value:
                    slots[slot] = value
                else:
                    slots.pop(slot, None)
        self.codes.update(changes.codes)
        return root

    def copy(self) -> MemoryState:
        """Return an independent copy."""
        twin = MemoryState()
        twin.root = self.root
        twin.accounts = dict(self.accounts)
        twin.slots = {address: dict(s) for address, s in self.slots.items()}
        twin.codes = dict(self.codes)
        twin._nodes = {owner: dict(rows) for owner, rows in self._nodes.items()}
        return twin

    def open_trie(self) -> StateTrie:
        """Return tries at this state. Modifying them does not modify this state."""
        return StateTrie(self, self._cache, self.root, self)
