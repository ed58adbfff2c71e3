"""State roots of a world, computed as often as needed during a block."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from evm.changes import Changes

if TYPE_CHECKING:
    from eth_typing import Hash32

    from evm.world import StateReader, World


class Tries(Protocol):
    """Tries that can be changed, such as `evm.state_trie.StateTrie`."""

    def apply(self, changes: Changes) -> Hash32:
        """Update the tries by changes, and return the new state root.

        Sets the new storage root of each account in `changes`.
        """


class StateRoots:
    """Computes state roots during the execution of a block.

    The trie is updated by the differences from its last root. If a later transaction
    restores a slot, the trie has to be updated back as well.
    """

    def __init__(
        self,
        world: World,
        state: StateReader,
        trie: Tries,
        *,
        clears_empty_accounts: bool,
    ) -> None:
        """Start at the parent's state.

        world: the block's world, with `state` below it.
        state: reader of the parent's state.
        trie: the tries of the parent's state. Each computed root updates them.
        clears_empty_accounts: see `World.changes`.
        """
        self._world = world
        self._state = state
        self._trie = trie
        self._clears_empty_accounts = clears_empty_accounts
        self.changes = Changes()

    def __call__(self) -> Hash32:
        """Return the root of the present state.

        `changes` are the block's changes so far.
        """
        changes = self._world.changes(clears_empty_accounts=self._clears_empty_accounts)
        moves = Changes()
        for address in self.changes.accounts.keys() - changes.accounts.keys():
            moves.accounts[address] = self._state.account(address)
        for address, values in self.changes.storage.items():
            kept = changes.storage.get(address, {})
            moves.storage[address] = {
                slot: self._state.storage(address, slot)
                for slot in values.keys() - kept.keys()
            }
        moves.apply(changes)
        root = self._trie.apply(moves)
        for address in changes.accounts:
            changes.accounts[address] = moves.accounts[address]
        self.changes = changes
        return root
