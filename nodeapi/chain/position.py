"""The importer's position: a block, and the ancestors that the next block needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from eth_typing import Hash32

from evm.blocks import Block
from evm.header_rules import UNCLE_DEPTH, Ancestry, Generation
from nodeapi.chain.verification import Parent

if TYPE_CHECKING:
    from evm.state_trie import StateTrie
    from evm.world import StateReader

ANCESTORS_KEPT = 256
"""Number of block hashes that BLOCKHASH can return."""


@dataclass(frozen=True, slots=True)
class Position:
    """The expected parent of the next block, and its ancestors."""

    block: Block
    total_difficulty: int
    hashes: Sequence[Hash32]
    """Hashes of the block and its ancestors, newest first."""
    ancestry: Ancestry
    """The newest of these blocks, as many as the uncle rules need."""

    def followed_by(self, block: Block, total_difficulty: int) -> Position:
        """Return the position at a child of this block."""
        return Position(
            block,
            total_difficulty,
            (block.header.hash, *self.hashes[: ANCESTORS_KEPT - 1]),
            (generation(block), *self.ancestry[:UNCLE_DEPTH]),
        )

    def is_outweighed_by(self, total_difficulty: int, number: int) -> bool:
        """Return whether a block with these properties should replace this one as head.

        The higher total difficulty decides. After the merge it no longer grows, and the
        height decides.
        """
        return (total_difficulty, number) > (
            self.total_difficulty,
            self.block.header.number,
        )

    def parent(self, state: StateReader, trie: StateTrie) -> Parent:
        """Return the data of this block that the execution of a child needs."""
        return Parent(
            self.block.header,
            self.total_difficulty,
            self.hashes,
            self.ancestry,
            state,
            trie,
        )


def generation(block: Block) -> Generation:
    """Return the properties of a block that the uncle rules need."""
    return Generation(block.header, [uncle.hash for uncle in block.uncles])
