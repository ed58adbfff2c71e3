"""States of the past that are proved, to execute a block that only was proved.

Nothing of such a state is stored. Its trie nodes come from a witness, or from proofs of an
upstream that keeps old states.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

from evm.changes import Changes
from evm.proof_nodes import ProofNodes
from evm.proved_state import ProvedState, UnknownValues
from evm.state_trie import StateTrie
from evm.trie import NodeCache
from nodeapi.proofs.keys import changed_below, probes_below

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from eth_typing import Address, Hash32

    from evm.changes import AccountValue
    from evm.proof_nodes import NodeRows
    from evm.proved_state import Keys
    from nodeapi.proofs.fetch import Fetched

Answer = TypeVar("Answer")


class PastState(ProvedState):
    """The part of a state that nodes prove, with its trie nodes as a `NodeReader`."""

    def __init__(
        self, root: Hash32, nodes: ProofNodes, codes: Mapping[Hash32, bytes]
    ) -> None:
        """Set the state root, and nodes and codes as for `ProvedState`."""
        self.proof_nodes = nodes
        self.codes = dict(codes)
        super().__init__(root, nodes, self.codes)
        self.state_root = root
        self._rows: NodeRows | None = None

    def add(self, nodes: ProofNodes, codes: Mapping[Hash32, bytes]) -> None:
        """Add nodes and codes."""
        self.proof_nodes.update(nodes)
        self.codes.update(codes)
        self._rows = None

    def open_trie(self) -> StateTrie:
        """Return tries at this state."""
        return StateTrie(self, NodeCache(0), self.state_root, self)

    def nodes(
        self, owner: bytes, paths: Collection[bytes], likely: Collection[bytes] = ()
    ) -> Mapping[bytes, bytes]:
        """Return the nodes of one trie at these paths."""
        if self._rows is None:
            self._rows = self.proof_nodes.rows(self.state_root)
        rows = self._rows.get(owner, {})
        return {path: rows[path] for path in {*paths, *likely} if path in rows}

    def live_slots(self, address: Address) -> Iterable[int]:
        """Return no slots, because nodes do not tell them.

        Before Cancun, a contract could be destroyed. The new state root needs its slots
        only if the account exists again at the end of the block. The computed root is
        then another one than the header's.
        """
        return ()


class PastProver(Protocol):
    """Asks upstreams for the state before and after a block."""

    def before(self, keys: Keys) -> Fetched:
        """Return values in the state before the block, proved. Raises: NoProof."""

    def after(self, keys: Keys) -> ProofNodes:
        """Return nodes that may prove keys in the state after the block."""


class FetchedState(PastState):
    """The state before a block. Its values and nodes are fetched when they are needed."""

    def __init__(self, prover: PastProver, root: Hash32, root_after: Hash32) -> None:
        """Begin without any node. root_after: the state root of the block itself."""
        super().__init__(root, ProofNodes(), {})
        self._prover = prover
        self._root_after = root_after
        self.changes = Changes()
        """The changes that are applied to the tries."""

    def fetch(self, keys: Keys) -> None:
        """Fetch values with their proofs. Raises: NoProof."""
        fetched = self._prover.before(keys)
        self.add(fetched.nodes, fetched.values.codes)

    def account(self, address: Address) -> AccountValue | None:
        """Return an account, or None if it does not exist. Raises: NoProof."""
        return self._known(lambda: PastState.account(self, address))

    def storage(self, address: Address, slot: int) -> int:
        """Return the value of a slot. Raises: NoProof."""
        return self._known(lambda: PastState.storage(self, address, slot))

    def code(self, code_hash: Hash32) -> bytes:
        """Return the contract code with this hash. Raises: NoProof."""
        return self._known(lambda: PastState.code(self, code_hash))

    def _known(self, read: Callable[[], Answer]) -> Answer:
        try:
            return read()
        except UnknownValues as error:
            self.fetch(error.keys)
        return read()

    def open_trie(self) -> StateTrie:
        """Return tries at this state, which tell the changes before their nodes are read."""
        return _FetchedTrie(self)

    def nodes(
        self, owner: bytes, paths: Collection[bytes], likely: Collection[bytes] = ()
    ) -> Mapping[bytes, bytes]:
        """Return the nodes of one trie at these paths.

        As in the follower's prover, a node is proved together with a changed key below
        it, or is the sibling of deleted keys. Raises: NoProof.
        """
        found = dict(super().nodes(owner, paths, likely))
        missing = [path for path in paths if path not in found]
        changed = changed_below(owner, missing, self.changes) if missing else None
        if changed:
            self.fetch(changed)
            found |= super().nodes(owner, missing)
            missing = [path for path in missing if path not in found]
        if missing:
            parents = [path[:-1] for path in missing]
            beside = self._prover.after(changed_below(owner, parents, self.changes))
            found |= beside.siblings(
                self._root_after, owner, missing, super().nodes(owner, parents)
            )
            missing = [path for path in missing if path not in found]
        if missing:
            self.fetch(probes_below(owner, missing, self.changes))
            found |= super().nodes(owner, missing)
        return found


class _FetchedTrie(StateTrie):
    def __init__(self, state: FetchedState) -> None:
        super().__init__(state, NodeCache(0), state.state_root, state)
        self._fetched = state

    def apply(self, changes: Changes) -> Hash32:
        """Update the tries by changes, and return the new state root."""
        self._fetched.changes = changes
        return super().apply(changes)
