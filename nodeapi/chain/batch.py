"""Batches of blocks that are committed together."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evm.changes import Changes
from nodeapi.chain.node_versions import CLOSED, Window

if TYPE_CHECKING:
    from evm.state_trie import DirtyNodes
    from nodeapi.chain.forkchoice import Forkchoice
    from nodeapi.chain.rows import BlockRow


@dataclass(slots=True)
class Batch:
    """Verified canonical blocks that are committed in one transaction."""

    raw: list[bytes] = field(default_factory=list)
    rows: list[BlockRow] = field(default_factory=list)
    versions: list[tuple[int, Changes]] = field(default_factory=list)
    changes: Changes = field(default_factory=Changes)
    nodes: DirtyNodes = field(default_factory=dict)
    """Modified trie nodes. If no versions are kept, they are set when the batch is
    complete."""
    window: Window = CLOSED
    """The blocks whose former trie nodes are kept."""
    node_versions: list[tuple[int, DirtyNodes]] = field(default_factory=list)
    """Block number and nodes that the block has changed, if versions are kept."""
    gas_used: int = 0
    forkchoice: Forkchoice | None = None
    """Forkchoice to be stored with the last block, which is its head."""

    def add_nodes(self, number: int, nodes: DirtyNodes) -> None:
        """Add the nodes that a block has changed."""
        self.node_versions.append((number, nodes))
        for owner, rows in nodes.items():
            self.nodes[owner] = {**self.nodes.get(owner, {}), **rows}
