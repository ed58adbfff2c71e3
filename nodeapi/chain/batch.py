"""Batches of blocks that are committed together."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evm.changes import Changes

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
    """Modified trie nodes, set when the batch is complete."""
    gas_used: int = 0
    forkchoice: Forkchoice | None = None
    """Forkchoice to be stored with the last block, which is its head."""
