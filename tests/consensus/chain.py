"""A chain in memory, into which blocks are imported as by the importer.

Blocks may come in any order of branches. Each one is executed and verified by
`nodeapi.chain.verification`; total difficulty and height choose the head.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from eth_typing import Hash32

from evm.blocks import Block
from evm.chain_config import ChainConfig
from evm.changes import Changes
from evm.headers import Header
from nodeapi.chain.genesis import genesis_state
from nodeapi.chain.memory_state import MemoryState
from nodeapi.chain.position import Position, generation
from nodeapi.chain.verification import verify_block
from tests.consensus.verdict import expect


class UnknownParent(Exception):
    """Raised for a block whose parent is not in the chain."""


@dataclass(frozen=True, slots=True)
class _Node:
    """A verified block, with the position of its children and its changes."""

    position: Position
    changes: Changes


class TestChain:
    """Verified blocks by hash, and the head among them."""

    __test__ = False  # the name begins with Test, but this is not a test class

    def __init__(
        self, config: ChainConfig, genesis: Block, pre: Mapping[str, Any]
    ) -> None:
        """Start with the genesis block.

        pre: its accounts, as in the `alloc` of a genesis.json.
        Raises: Mismatch when they do not have the state root of its header.
        """
        self._config = config
        self._genesis_state = MemoryState()
        root = self._genesis_state.adopt(*genesis_state({"alloc": pre}))
        header = genesis.header
        expect("genesis state root", header.state_root, root)
        self.head = Position(
            genesis, header.difficulty, (header.hash,), (generation(genesis),)
        )
        self._nodes = {header.hash: _Node(self.head, Changes())}
        self._state, self._state_of = self._genesis_state.copy(), header.hash

    def __contains__(self, block_hash: Hash32) -> bool:
        return block_hash in self._nodes

    def insert(self, block: Block) -> None:
        """Verify a block and add it.

        A known header is verified again, since its body may be another one.
        Raises: UnknownParent, InvalidBlock; the chain is as before then.
        """
        header = block.header
        parent = self._nodes.get(header.parent_hash)
        if parent is None:
            raise UnknownParent(f"unknown parent 0x{header.parent_hash.hex()}")
        state = self._state_after(header.parent_hash)
        trie = state.open_trie()
        verified = verify_block(
            block, parent.position.parent(state, trie), self._config
        )
        if header.hash in self._nodes:
            return
        position = parent.position.followed_by(block, verified.total_difficulty)
        state.adopt(verified.changes, trie, header.state_root)
        self._state_of = header.hash
        self._nodes[header.hash] = _Node(position, verified.changes)
        if self.head.is_outweighed_by(verified.total_difficulty, header.number):
            self.head = position

    def head_state(self) -> MemoryState:
        """Return the state after the head."""
        return self._state_after(self.head.block.header.hash)

    def _state_after(self, block_hash: Hash32) -> MemoryState:
        """Return the state after a block; it moves on with the next insertion."""
        if self._state_of != block_hash:
            state = self._genesis_state.copy()
            for changes in reversed(self._changes_up_to(block_hash)):
                state.apply(changes)
            self._state, self._state_of = state, block_hash
        return self._state

    def _changes_up_to(self, block_hash: Hash32) -> list[Changes]:
        """Return the changes of a block and its ancestors, newest first."""
        line = []
        while block_hash in self._nodes:
            node = self._nodes[block_hash]
            line.append(node.changes)
            header: Header = node.position.block.header
            block_hash = header.parent_hash
        return line
