"""Blocks on their way into the database together."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from nodeapi.evm.changes import Changes

if TYPE_CHECKING:
    from nodeapi.chain.rows import BlockRow
    from nodeapi.evm.state_trie import DirtyNodes


@dataclass(slots=True)
class Batch:
    """Canonical blocks that are verified, and committed together."""

    raw: list[bytes] = field(default_factory=list)
    rows: list[BlockRow] = field(default_factory=list)
    versions: list[tuple[int, Changes]] = field(default_factory=list)
    changes: Changes = field(default_factory=Changes)
    nodes: DirtyNodes = field(default_factory=dict)
    """Filled when the batch is full."""
    gas_used: int = 0
