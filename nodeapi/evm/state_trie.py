"""The state root: the state trie and the storage tries that its leaves name.

Source: yellow paper, 4.1; the tries are "secure", keys are hashed.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

from eth_typing import Address, Hash32

from nodeapi.evm import rlp
from nodeapi.evm.changes import AccountValue, Changes
from nodeapi.evm.signatures import keccak
from nodeapi.evm.trie import EMPTY_ROOT, NodeCache, PathTrie

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nodeapi.evm.trie import NodeReader
    from nodeapi.evm.world import StateReader

_HASH_PREFIX = b"\xa0"
"""RLP of a string of 32 bytes begins so."""

DirtyNodes: TypeAlias = "dict[bytes, Mapping[bytes, bytes | None]]"
"""Owner → path → RLP of a node whose row is to be written, None: to be removed."""

STATE_OWNER = b""
"""Owner of the state trie's nodes; a storage trie's is keccak(address)."""


@lru_cache(maxsize=131_072)
def address_key(address: Address) -> bytes:
    """Return an account's key in the state trie, its owner among the nodes."""
    return keccak(address)


@lru_cache(maxsize=131_072)
def slot_key(slot: int) -> bytes:
    """Return a slot's key in its account's storage trie."""
    return keccak(slot.to_bytes(32, "big"))


def account_leaf(account: AccountValue) -> bytes:
    """Return an account as it enters the state trie: the RLP of its four fields."""
    payload = (
        rlp.encode(rlp.encode_int(account.nonce))
        + rlp.encode(rlp.encode_int(account.balance))
        + _HASH_PREFIX
        + (account.storage_root or EMPTY_ROOT)
        + _HASH_PREFIX
        + account.code_hash
    )
    return rlp.wrap_list(payload)


def slot_leaf(value: int) -> bytes:
    """Return a storage value as it enters a storage trie, empty for zero."""
    return rlp.encode(rlp.encode_int(value)) if value else b""


class StateTrie:
    """All tries of a network, at one state which `apply` moves on."""

    def __init__(
        self,
        reader: NodeReader,
        cache: NodeCache,
        root: Hash32 | None,
        state: StateReader,
    ) -> None:
        """Open the tries at a state.

        state: that same state. It may, but need not, move on with the tries: what is
            asked of it is an account's storage root when its storage first changes,
            and values that spare reading leaves.
        """
        self._reader = reader
        self._cache = cache
        self._state = state
        self._accounts = PathTrie(STATE_OWNER, reader, root, cache)
        self._storage: dict[Address, PathTrie] = {}

    def apply(self, changes: Changes) -> Hash32:
        """Move the tries on by a difference, and return the new state root.

        Writes each changed account's new storage root into the difference.
        """
        for address, values in changes.storage.items():
            root = self._update_storage(address, values)
            account = changes.accounts[address]
            if account is not None:
                changes.accounts[address] = account._replace(storage_root=root)
        addresses = {address_key(address): address for address in changes.accounts}

        def recall(key: bytes) -> bytes:
            account = self._state.account(addresses[key])
            return b"" if account is None else account_leaf(account)

        self._accounts.update(
            {
                key: account_leaf(account) if account else b""
                for key, address in addresses.items()
                for account in (changes.accounts[address],)
            },
            recall,
        )
        return Hash32(self._accounts.root_hash())

    def _update_storage(
        self, address: Address, values: Mapping[int, int]
    ) -> Hash32 | None:
        """Change an account's slots, and return the root of its storage."""
        slots = {slot_key(slot): slot for slot in values}
        trie = self._storage_trie(address)
        trie.update(
            {key: slot_leaf(values[slot]) for key, slot in slots.items()},
            lambda key: slot_leaf(self._state.storage(address, slots[key])),
        )
        root = trie.root_hash()
        return None if root == EMPTY_ROOT else Hash32(root)

    def dirty_nodes(self) -> DirtyNodes:
        """Return what differs from the rows; it is the caller's after `mark_clean`."""
        dirty: DirtyNodes = {STATE_OWNER: self._accounts.dirty_nodes()}
        for address, trie in self._storage.items():
            dirty[address_key(address)] = trie.dirty_nodes()
        return dirty

    def mark_clean(self) -> None:
        """Take the rows as up to date with what `dirty_nodes` gave."""
        self._accounts.mark_clean()
        self._storage.clear()

    def _storage_trie(self, address: Address) -> PathTrie:
        trie = self._storage.get(address)
        if trie is None:
            account = self._state.account(address)
            root = None if account is None else account.storage_root
            trie = self._storage[address] = PathTrie(
                address_key(address), self._reader, root, self._cache
            )
        return trie
