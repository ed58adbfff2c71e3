"""A state that lies in memory as a whole: what generated chains are built on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eth_typing import Address, Hash32

from nodeapi.evm.changes import AccountValue, Changes
from nodeapi.evm.state_trie import StateTrie
from nodeapi.evm.trie import NodeCache

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

_NODES_CACHED = 500_000


class MemoryState:
    """The state after a block, with the trie nodes that prove it.

    It is both the reader that a `World` stands on and the reader of its tries.
    """

    def __init__(self) -> None:
        self.root: Hash32 | None = None
        """The state root, None while there is no account."""
        self._accounts: dict[Address, AccountValue] = {}
        self._slots: dict[Address, dict[int, int]] = {}
        self._codes: dict[Hash32, bytes] = {}
        self._nodes: dict[bytes, dict[bytes, bytes]] = {}
        self._cache = NodeCache(_NODES_CACHED)

    def account(self, address: Address) -> AccountValue | None:
        """Return an account, None when there is none."""
        return self._accounts.get(address)

    def storage(self, address: Address, slot: int) -> int:
        """Return the value of a storage slot, zero when never written."""
        return self._slots.get(address, {}).get(slot, 0)

    def live_slots(self, address: Address) -> Iterable[int]:
        """Return the slots of an account that are not zero."""
        return self._slots.get(address, {}).keys()

    def code(self, code_hash: Hash32) -> bytes:
        """Return the contract code with this hash, which must exist."""
        return self._codes[code_hash]

    def nodes(self, owner: bytes, paths: Collection[bytes]) -> Mapping[bytes, bytes]:
        """Return the trie nodes that stand at these paths, absent ones left out."""
        rows = self._nodes.get(owner, {})
        return {path: rows[path] for path in paths if path in rows}

    def root_after(self, changes: Changes) -> Hash32:
        """Return the state root that the changes would give; the state stays."""
        return self.open_trie().apply(changes)

    def apply(self, changes: Changes) -> Hash32:
        """Move the state on by a difference, and return its new root."""
        trie = self.open_trie()
        return self.adopt(changes, trie, trie.apply(changes))

    def adopt(self, changes: Changes, trie: StateTrie, root: Hash32) -> Hash32:
        """Move the state on to where the tries, with a new root, stand already."""
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
                self._accounts.pop(address, None)
            else:
                self._accounts[address] = account
        for address, values in changes.storage.items():
            slots = self._slots.setdefault(address, {})
            for slot, value in values.items():
                if value:
                    slots[slot] = value
                else:
                    slots.pop(slot, None)
        self._codes.update(changes.codes)
        return root

    def copy(self) -> MemoryState:
        """Return a state of its own that equals this one."""
        twin = MemoryState()
        twin.root = self.root
        twin._accounts = dict(self._accounts)
        twin._slots = {address: dict(s) for address, s in self._slots.items()}
        twin._codes = dict(self._codes)
        twin._nodes = {owner: dict(rows) for owner, rows in self._nodes.items()}
        return twin

    def open_trie(self) -> StateTrie:
        """Return tries that stand here; they move without moving the state."""
        return StateTrie(self, self._cache, self.root, self)
