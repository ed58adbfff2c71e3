"""Where an importer stands: a block, and as much of its line as the next one needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from eth_typing import Hash32

from nodeapi.chain.verification import Parent
from nodeapi.evm.blocks import Block
from nodeapi.evm.header_rules import UNCLE_DEPTH, Ancestry, Generation

if TYPE_CHECKING:
    from nodeapi.evm.state_trie import StateTrie
    from nodeapi.evm.world import StateReader

ANCESTORS_KEPT = 256
"""As many hashes as BLOCKHASH can ask for."""


@dataclass(frozen=True, slots=True)
class Position:
    """The block that the next one is expected to follow, and its line."""

    block: Block
    total_difficulty: int
    hashes: Sequence[Hash32]
    """Of the block and its ancestors, newest first."""
    ancestry: Ancestry
    """The same blocks, as many as the uncle rules look at."""

    def followed_by(self, block: Block, total_difficulty: int) -> Position:
        """Return the position of a block on top of this one."""
        return Position(
            block,
            total_difficulty,
            (block.header.hash, *self.hashes[: ANCESTORS_KEPT - 1]),
            (generation(block), *self.ancestry[:UNCLE_DEPTH]),
        )

    def parent(self, state: StateReader, trie: StateTrie) -> Parent:
        """Return what a block on top of this one is executed on."""
        return Parent(
            self.block.header,
            self.total_difficulty,
            self.hashes,
            self.ancestry,
            state,
            trie,
        )


def generation(block: Block) -> Generation:
    """Return what the uncle rules ask of a block."""
    return Generation(block.header, [uncle.hash for uncle in block.uncles])
