"""The tries of a sparse network in a worker process, some of whose nodes are unknown.

A task that needs unknown nodes ends with UnknownNodes. It is executed again with nodes that
an upstream sends to prove the changed accounts and slots.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evm.proof_nodes import ProofNodes
from evm.proved_state import Keys
from evm.trie import MissingTrieNode
from nodeapi.proofs.unknown import UnknownNodes

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from eth_typing import Hash32

    from evm.changes import Changes
    from nodeapi.chain.trie_at import Rewinding


class ProvedTries:
    """The tries after a block, with the nodes of proofs where none are stored."""

    def __init__(
        self, rewinding: Rewinding, root: bytes, nodes: Iterable[bytes]
    ) -> None:
        """Set the stored nodes, the state root, and the RLP of other nodes."""
        self._rewinding = rewinding
        self._rows = ProofNodes(nodes).rows(root)
        self._tries = rewinding.open(self)

    def nodes(
        self, owner: bytes, paths: Collection[bytes], likely: Collection[bytes] = ()
    ) -> Mapping[bytes, bytes]:
        """Return the nodes of one trie at these paths; see `evm.trie.NodeReader`."""
        found = dict(self._rewinding.nodes(owner, paths, likely))
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
