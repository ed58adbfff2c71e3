"""A branch: the state after a line of side blocks, kept while blocks are added to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evm.changes import Changes
from nodeapi.chain.state_reader import OverlayState

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evm.state_trie import StateTrie
    from nodeapi.chain.branches import SideBlock
    from nodeapi.chain.position import Position
    from nodeapi.chain.state_reader import CachedState, StoredState
    from nodeapi.chain.verification import Parent, Verified


class StateMismatch(RuntimeError):
    """Raised when the database's rows do not match the state root of a stored block."""


class Branch:
    """A line of side blocks on the canonical chain, with the state after the last one.

    A line without blocks is the canonical chain up to the fork point. The state and its
    tries are kept as differences from the head's rows. A branch is therefore invalid once
    the head has changed.
    """

    def __init__(
        self,
        fork_number: int,
        line: list[SideBlock],
        position: Position,
        fork_state: StoredState,
        state: CachedState,
        trie: StateTrie,
        changes: Changes,
        diffs: Iterable[Changes],
    ) -> None:
        """Move a state and its tries from the head to the end of a line of side blocks.

        position: the last block of the line, or the fork point.
        fork_state: the state after the fork point.
        state, trie: the head's. The branch takes them over and modifies them.
        changes: the changes from the head's state to the fork point's. They are taken
            over as well.
        diffs: the changes of each block of the line.

        Raises: StateMismatch.
        """
        self.fork_number = fork_number
        self.line = line
        self.position = position
        self.state = state
        self.trie = trie
        self.changes = changes
        """The changes from the head's state to the branch's."""
        self._since_fork = Changes()
        self._below = OverlayState(fork_state, self._since_fork)
        for diff in diffs:
            self._since_fork.apply(diff)
        changes.apply(self._since_fork)
        # The tries compare old values, which would otherwise be read one by one.
        state.fetch(
            changes.accounts,
            [(a, slot) for a, slots in changes.storage.items() for slot in slots],
        )
        header = position.block.header
        if trie.apply(changes) != header.state_root:
            raise StateMismatch(
                f"the rows don't give the state of block 0x{header.hash.hex()}"
            )
        state.absorb(changes, self._below)

    @property
    def parent(self) -> Parent:
        """The last block, for the execution of a block on top of it."""
        return self.position.parent(self.state, self.trie)

    def append(self, side: SideBlock, verified: Verified) -> None:
        """Add a stored block, whose verification has moved the tries already."""
        changes = verified.changes
        self.line.append(side)
        self.changes.apply(changes)
        self._since_fork.apply(changes)
        self.state.absorb(changes, self._below)
        self.position = self.position.followed_by(
            verified.block, verified.total_difficulty
        )
