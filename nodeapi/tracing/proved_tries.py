"""The tries of a sparse network in a worker process, some of whose nodes are unknown.

A task that needs unknown nodes ends with UnknownNodes. It is executed again with nodes that
an upstream sends to prove the changed accounts and slots.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evm.proof_nodes import ProofNodes
from evm.proved_state import Keys
from evm.state_trie import StateTrie
from evm.trie import MissingTrieNode, NodeCache
from nodeapi.proofs.unknown import UnknownNodes

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from eth_typing import Hash32

    from evm.changes import Changes
    from evm.world import StateReader
    from nodeapi.chain.trie_at import Rewinding


class ProvedTries:
    """The tries after a block, with the nodes of proofs where none are stored."""

    def __init__(
        self,
        rewinding: Rewinding | None,
        state: StateReader,
        root: Hash32,
        nodes: Iterable[bytes],
    ) -> None:
        """Set the state and its root, and nodes.

        rewinding: the stored ones; None below the checkpoint. nodes: RLP of other ones.
        """
        self._rewinding = rewinding
        self._rows = ProofNodes(nodes).rows(root)
        self._tries = (
            StateTrie(self, NodeCache(0), root, state)
            if rewinding is None
            else rewinding.open(self)
        )

    def nodes(
        self, owner: bytes, paths: Collection[bytes], likely: Collection[bytes] = ()
    ) -> Mapping[bytes, bytes]:
        """Return the nodes of one trie at these paths; see `evm.trie.NodeReader`."""
        found: dict[bytes, bytes] = {}
        if self._rewinding is not None:
            found.update(self._rewinding.nodes(owner, paths, likely))
        proved = self._rows.get(owner, {})
        for path in (*paths, *likely):
            if path not in found and path in proved:
                found[path] = proved[path]
        return found

    def apply(self, changes: Changes) -> Hash32:
        """Update the tries, and return the state root.

        Raises: UnknownNodes with all changed accounts and slots.
        """
        keys = Keys(
            {*changes.accounts, *changes.storage},
            {(a, slot) for a, values in changes.storage.items() for slot in values},
        )
        try:
            return self._tries.apply(changes)
        except MissingTrieNode as error:
            raise UnknownNodes(keys) from error
