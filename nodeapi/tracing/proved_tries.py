"""The tries of a sparse network in a worker process, some of whose nodes are unknown.

A task that needs unknown nodes ends with UnknownNodes. It is executed again with nodes that
an upstream sends to prove the changed accounts and slots.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from evm.proof_nodes import ProofNodes
from evm.proved_state import Keys
from evm.state_trie import StateTrie
from evm.trie import MissingTrieNode, NodeCache
from nodeapi.chain.trie_at import MAX_CHANGES, rewind
from nodeapi.proofs.unknown import UnknownNodes
from nodeapi.tracing.states import PastRows

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from eth_typing import Hash32

    from evm.changes import Changes
    from evm.trie import NodeReader
    from evm.world import StateReader
    from nodeapi.chain.trie_at import Rewinding
    from nodeapi.tracing.context import TaskContext
    from nodeapi.tracing.states import BlockState


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
        self._state = state
        self._root = root
        self._rows = ProofNodes(nodes).rows(root)
        self._tries = self.open()

    def open(
        self, reader: NodeReader | None = None, cache: NodeCache | None = None
    ) -> StateTrie:
        """Return tries that can be changed; see `Rewinding.open`."""
        reader = self if reader is None else reader
        if self._rewinding is None or any(self._rows.values()):
            # Storage tries are not rewound, because that may need unknown nodes.
            return StateTrie(reader, cache or NodeCache(0), self._root, self._state)
        return self._rewinding.open(reader, cache)

    def nodes(
        self, owner: bytes, paths: Collection[bytes], likely: Collection[bytes] = ()
    ) -> Mapping[bytes, bytes]:
        """Return the nodes of one trie at these paths; see `evm.trie.NodeReader`."""
        rewinding, proved = self._rewinding, self._rows.get(owner, {})
        found: dict[bytes, bytes] = {}
        if rewinding is not None and (
            not any(self._rows.values()) or rewinding.has(owner)
        ):
            found.update(rewinding.nodes(owner, paths, likely))
        for path in (*paths, *likely):
            if path in proved:
                found[path] = proved[path]
        return found

    def apply(self, changes: Changes) -> Hash32:
        """Update the tries, and return the state root.

        Raises: UnknownNodes with all changed accounts and slots.
        """
        keys = keys_of(changes)  # before they are emptied
        try:
            return self._tries.apply(changes)
        except MissingTrieNode as error:
            raise UnknownNodes(keys) from error


def keys_of(changes: Changes) -> Keys:
    """Return the changed accounts and slots."""
    return Keys(
        {*changes.accounts, *changes.storage},
        {(a, slot) for a, values in changes.storage.items() for slot in values},
    )


def proved_tries(
    context: TaskContext,
    after: BlockState,
    arguments: Mapping[str, Any],
    *,
    cache: NodeCache | None = None,
    max_changes: int = MAX_CHANGES,
) -> ProvedTries | None:
    """Return the tries after a block of a sparse network, None of a complete one.

    arguments: of the task. `nodes` are those of proofs as hexadecimal digits, if the stored
        ones do not suffice.

    Raises: TooManyChanges.
    """
    if context.checkpoint is None:
        return None
    header = after.header
    rewinding = None
    if not isinstance(after.state, PastRows):
        # Going back may need unknown nodes. All of them come from proofs then.
        with suppress(MissingTrieNode):
            rewinding = rewind(
                context.connection,
                context.network_id,
                header.hash,
                cache=cache,
                max_changes=max_changes,
            )
    nodes = map(bytes.fromhex, arguments.get("nodes", ()))
    return ProvedTries(rewinding, after.state, header.state_root, nodes)
