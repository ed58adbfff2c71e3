"""The head's state and tries of a network that started at a checkpoint.

Values and nodes that are unknown are fetched and proved by a `Prover` in the middle of a
read, and stored, so that the execution of a block simply goes on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from evm.changes import Changes
from evm.proved_state import UnknownValues
from evm.state_trie import StateTrie
from nodeapi.chain.state_reader import StoredNodes, StoredState

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from typing import TypeVar

    import psycopg
    from eth_typing import Address, Hash32

    from evm.blocks import Block
    from evm.changes import AccountValue
    from evm.headers import Header
    from evm.proved_state import Keys, Slot
    from evm.trie import NodeCache
    from evm.world import StateReader

    Result = TypeVar("Result")


class Prover(Protocol):
    """Fetches unknown values and trie nodes with their proofs, and stores them.

    fork_number: number of the canonical block at which the branch begins that is executed,
        None for the chain of the head. What is unknown is the same after this block.
    target: the block whose state results from the changes that are applied to the tries.
        `expect` sets it as well.

    All methods but `executed` raise NoProof.
    """

    fork_number: int | None
    target: Header | None

    def expect(self, block: Block) -> Keys | None:
        """Return what a block on top of the head will probably read, None if unknown."""

    def values(self, keys: Keys) -> None:
        """Store values, with the trie nodes that prove them."""

    def executed(self, access_list: bytes) -> None:
        """Note what the expected block has read. access_list: as RLP."""

    def nodes(
        self, owner: bytes, paths: Collection[bytes], changes: Changes
    ) -> Mapping[bytes, bytes]:
        """Store nodes of one trie that are needed to apply changes, and return them."""


class SparseState(StoredState):
    """The canonical state after a block, whose unknown values are proved when read."""

    def __init__(
        self,
        connection: psycopg.Connection[Any],
        network_id: int,
        number: int,
        prover: Prover,
    ) -> None:
        super().__init__(connection, network_id, number)
        self._prover = prover

    def require(self, keys: Keys) -> None:
        """Prove those of the values that are unknown, all at once."""
        unknown = self.unknown(keys)
        if unknown:
            self._prover.values(unknown)

    def account(self, address: Address) -> AccountValue | None:
        """Return an account, or None if it does not exist."""
        return self._proved(lambda: StoredState.account(self, address))

    def storage(self, address: Address, slot: int) -> int:
        """Return the value of a storage slot."""
        return self._proved(lambda: StoredState.storage(self, address, slot))

    def accounts(
        self, addresses: Collection[Address]
    ) -> dict[Address, AccountValue | None]:
        """Return several accounts."""
        return self._proved(lambda: StoredState.accounts(self, addresses))

    def slots(self, keys: Collection[Slot]) -> dict[Slot, int]:
        """Return the values of several slots."""
        return self._proved(lambda: StoredState.slots(self, keys))

    def _proved(self, read: Callable[[], Result]) -> Result:
        """Read once more if values had to be proved."""
        try:
            return read()
        except UnknownValues as error:
            self._prover.values(error.keys)
        return read()


class SparseNodes(StoredNodes):
    """The stored trie nodes of the head's state. Unknown ones are proved when needed."""

    def __init__(
        self, connection: psycopg.Connection[Any], network_id: int, prover: Prover
    ) -> None:
        super().__init__(connection, network_id)
        self._prover = prover
        self.changes = Changes()
        """The changes that are applied to the tries."""

    def nodes(
        self, owner: bytes, paths: Collection[bytes], likely: Collection[bytes] = ()
    ) -> Mapping[bytes, bytes]:
        """Return the nodes of one trie at these paths. Absent nodes are omitted."""
        found = super().nodes(owner, paths, likely)
        absent = [path for path in paths if path not in found]
        if not absent:
            return found
        return {**found, **self._prover.nodes(owner, absent, self.changes)}


class SparseTrie(StateTrie):
    """The tries of a sparse state, of which only proved nodes are known."""

    def __init__(
        self, nodes: SparseNodes, cache: NodeCache, root: Hash32, state: StateReader
    ) -> None:
        super().__init__(nodes, cache, root, state)
        self._nodes = nodes

    def apply(self, changes: Changes) -> Hash32:
        """Update the tries by changes, and return the new state root."""
        self._nodes.changes = changes
        return super().apply(changes)
