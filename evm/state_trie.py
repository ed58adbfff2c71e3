"""The state root: the state trie, and the storage tries of its accounts.

Source: Yellow Paper, section 4.1. The tries are "secure": their keys are hashed.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

from eth_typing import Address, Hash32

from evm import rlp
from evm.changes import AccountValue, Changes
from evm.signatures import keccak
from evm.trie import EMPTY_ROOT, NodeCache, PathTrie

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from evm.trie import NodeReader
    from evm.trie_proofs import KeyProof
    from evm.world import StateReader

_HASH_PREFIX = b"\xa0"
"""RLP prefix of a 32-byte string."""

DirtyNodes: TypeAlias = "dict[bytes, Mapping[bytes, bytes | None]]"
"""Owner → path → RLP of a node to be written, or None for a node to be deleted."""

STATE_OWNER = b""
"""Owner of the state trie's nodes. The owner of a storage trie's nodes is
keccak(address)."""


@lru_cache(maxsize=131_072)
def address_key(address: Address) -> bytes:
    """Return an account's key in the state trie.

    It also is its storage trie's owner.
    """
    return keccak(address)


@lru_cache(maxsize=131_072)
def slot_key(slot: int) -> bytes:
    """Return a slot's key in its account's storage trie."""
    return keccak(slot.to_bytes(32, "big"))


def account_leaf(account: AccountValue) -> bytes:
    """Return an account's value in the state trie: the RLP of its four fields."""
    payload = (
        rlp.encode(rlp.encode_int(account.nonce))
        + rlp.encode(rlp.encode_int(account.balance))
        + _HASH_PREFIX
        + (account.storage_root or EMPTY_ROOT)
        + _HASH_PREFIX
        + account.code_hash
    )
    return rlp.wrap_list(payload)


def decode_account_leaf(leaf: bytes) -> AccountValue:
    """Return the account of a value in the state trie, the inverse of `account_leaf`."""
    nonce, balance, storage_root, code_hash = rlp.decode_list(rlp.decode(leaf))
    return AccountValue(
        rlp.decode_int(nonce),
        rlp.decode_int(balance),
        Hash32(rlp.decode_bytes(code_hash, 32)),
        None
        if storage_root == EMPTY_ROOT
        else Hash32(rlp.decode_bytes(storage_root, 32)),
    )


def slot_leaf(value: int) -> bytes:
    """Return a slot's value in a storage trie, or b"" for zero."""
    return rlp.encode(rlp.encode_int(value)) if value else b""


def decode_slot_leaf(leaf: bytes) -> int:
    """Return the number of a value in a storage trie, the inverse of `slot_leaf`."""
    return rlp.decode_int(rlp.decode(leaf)) if leaf else 0


class StateTrie:
    """The state trie and all storage tries of a network, at the state after a block."""

    def __init__(
        self,
        reader: NodeReader,
        cache: NodeCache,
        root: Hash32 | None,
        state: StateReader,
    ) -> None:
        """Open the tries at a state.

        state: reader of the same state. It may be updated together with the tries, but
            need not be. It provides an account's storage root before the first change
            of its storage, and old values, which save reads of leaves.
        """
        self._reader = reader
        self._cache = cache
        self._state = state
        self._accounts = PathTrie(STATE_OWNER, reader, root, cache)
        self._storage: dict[Address, PathTrie] = {}

    def apply(self, changes: Changes) -> Hash32:
        """Update the tries by changes, and return the new state root.

        Sets the new storage root of each account in `changes`.
        """
        for address, values in changes.storage.items():
            root = self._update_storage(address, values)
            account = changes.accounts[address]
            if account is not None:
                changes.accounts[address] = account._replace(storage_root=root)
        return self.set_accounts(changes.accounts, self._state.account)

    def set_accounts(
        self,
        accounts: Mapping[Address, AccountValue | None],
        before: Callable[[Address], AccountValue | None],
    ) -> Hash32:
        """Set accounts with their storage roots, and return the new state root.

        Storage tries are left unchanged. None deletes an account.

        before: returns an account's present value.
        """
        addresses = {address_key(address): address for address in accounts}

        def recall(key: bytes) -> bytes:
            account = before(addresses[key])
            return b"" if account is None else account_leaf(account)

        self._accounts.update(
            {
                key: account_leaf(account) if account else b""
                for key, address in addresses.items()
                for account in (accounts[address],)
            },
            recall,
        )
        return Hash32(self._accounts.root_hash())

    def prove_accounts(self, addresses: Sequence[Address]) -> list[KeyProof]:
        """Return the proof of each account. Its value is the account's leaf, or b""."""
        return self._accounts.prove(map(address_key, addresses))

    def prove_slots(self, address: Address, slots: Sequence[int]) -> list[KeyProof]:
        """Return the proof of each slot of an account. Its value is the slot's leaf."""
        return self._storage_trie(address).prove(map(slot_key, slots))

    def _update_storage(
        self, address: Address, values: Mapping[int, int]
    ) -> Hash32 | None:
        """Update an account's slots, and return the new storage root."""
        slots = {slot_key(slot): slot for slot in values}
        trie = self._storage_trie(address)
        trie.update(
            {key: slot_leaf(values[slot]) for key, slot in slots.items()},
            lambda key: slot_leaf(self._state.storage(address, slots[key])),
        )
        root = trie.root_hash()
        return None if root == EMPTY_ROOT else Hash32(root)

    def dirty_nodes(self) -> DirtyNodes:
        """Return the changed rows of all tries since `mark_clean`.

        The next `mark_clean` leaves the result unchanged.
        """
        dirty: DirtyNodes = {STATE_OWNER: self._accounts.dirty_nodes()}
        for address, trie in self._storage.items():
            dirty[address_key(address)] = trie.dirty_nodes()
        return dirty

    def mark_clean(self) -> None:
        """Mark all nodes as unchanged, because the rows of `dirty_nodes` were written."""
        self._accounts.mark_clean()
        self._storage.clear()

    def _storage_trie(self, address: Address) -> PathTrie:
        trie = self._storage.get(address)
        if trie is None:
            trie = self._storage[address] = self.open_storage(address)
        return trie

    def open_storage(self, address: Address) -> PathTrie:
        """Return an account's storage trie, without changes."""
        account = self._state.account(address)
        root = None if account is None else account.storage_root
        return PathTrie(address_key(address), self._reader, root, self._cache)
