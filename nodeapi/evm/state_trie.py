"""The state root: the state trie and the storage tries that its leaves name.

Source: yellow paper, 4.1; the tries are "secure", keys are hashed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

from eth_typing import Address, Hash32

from nodeapi.evm import rlp
from nodeapi.evm.changes import AccountValue, Changes
from nodeapi.evm.signatures import keccak
from nodeapi.evm.trie import EMPTY_ROOT, NodeCache, PathTrie

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nodeapi.evm.trie import NodeReader

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
    """Return an account as it enters the state trie."""
    return rlp.encode(
        [
            rlp.encode_int(account.nonce),
            rlp.encode_int(account.balance),
            account.storage_root or EMPTY_ROOT,
            account.code_hash,
        ]
    )


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
        storage_root: Callable[[Address], Hash32 | None],
    ) -> None:
        """Open the tries at a state.

        storage_root: gives an account's storage root in that same state.
        """
        self._reader = reader
        self._cache = cache
        self._state = PathTrie(STATE_OWNER, reader, root, cache)
        self._storage: dict[Address, PathTrie] = {}
        self._storage_root = storage_root

    def apply(self, changes: Changes) -> Hash32:
        """Move the tries on by a difference, and return the new state root.

        Writes each changed account's new storage root into the difference.
        """
        for address, values in changes.storage.items():
            trie = self._storage_trie(address)
            trie.update({slot_key(s): slot_leaf(v) for s, v in values.items()})
            root: Hash32 | None = Hash32(trie.root_hash())
            account = changes.accounts[address]
            if account is not None:
                changes.accounts[address] = account._replace(
                    storage_root=None if root == EMPTY_ROOT else root
                )
        self._state.update(
            {
                address_key(address): b"" if account is None else account_leaf(account)
                for address, account in changes.accounts.items()
            }
        )
        return Hash32(self._state.root_hash())

    def dirty_nodes(self) -> Iterator[tuple[bytes, bytes, bytes | None]]:
        """Yield (owner, path, RLP or None to remove) of what differs from the rows."""
        for path, node in self._state.dirty_nodes().items():
            yield STATE_OWNER, path, node
        for address, trie in self._storage.items():
            owner = address_key(address)
            for path, node in trie.dirty_nodes().items():
                yield owner, path, node

    def mark_clean(self) -> None:
        """Take the rows as up to date with what `dirty_nodes` gave."""
        self._state.mark_clean()
        self._storage.clear()

    def _storage_trie(self, address: Address) -> PathTrie:
        trie = self._storage.get(address)
        if trie is None:
            trie = self._storage[address] = PathTrie(
                address_key(address),
                self._reader,
                self._storage_root(address),
                self._cache,
            )
        return trie
