"""The growing chain of the soak test, with which responses are compared."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from bench.token_chain import SUPPLY_EACH, add_block, genesis_of, holders_of
from evm.blocks import Block, encode_block
from samples.builder import ChainBuilder
from samples.signers import Signer

CHAIN_ID = 5_156
HOLDERS = 50
TRANSFERS = 5
MAX_DEPTH = 7
STABLE_BLOCKS = 10
"""Blocks below the head that no reorganisation replaces: more than MAX_DEPTH."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A block that the upstream has announced."""

    number: int
    hash: str
    parent_hash: str
    transactions: list[str]
    raw: bytes


class SoakChain:
    """A canonical chain that grows and is reorganised, with all its former blocks."""

    def __init__(self) -> None:
        self._holders = holders_of(HOLDERS)
        self._chance = random.Random(19)
        self.genesis: dict[str, Any] = genesis_of(self._holders, CHAIN_ID)
        self._chain = ChainBuilder(self.genesis, seconds_per_block=1)
        self._branch: ChainBuilder | None = None
        genesis = self._shown(self._chain.genesis)
        self.line = [genesis]
        """The canonical blocks by number."""
        self.known = {genesis.hash: genesis}
        """All blocks that are or were canonical, by hash."""
        self.balances = [dict.fromkeys(map(_address, self._holders), SUPPLY_EACH)]
        """Tokens of each holder after each canonical block, by number."""

    @property
    def head(self) -> Shown:
        """The newest canonical block."""
        return self.line[-1]

    def grow(self) -> list[Shown]:
        """Add a block to the canonical chain; return it."""
        return self._adopt([self._next(self._chain)])

    def keep_branch(self) -> None:
        """Make the head the fork point of the next reorganisation."""
        self._branch = self._chain.fork()

    def reorganise(self) -> list[Shown]:
        """Replace the blocks above the fork point by one more, and return the new blocks."""
        branch = self._branch
        assert branch is not None
        depth = self.head.number - branch.head.number
        blocks = [self._next(branch) for _ in range(depth + 1)]
        self._chain, self._branch = branch, None
        return self._adopt(blocks)

    def _next(self, chain: ChainBuilder) -> Block:
        return add_block(chain, self._holders, self._chance, TRANSFERS)

    def _adopt(self, blocks: list[Block]) -> list[Shown]:
        """Make blocks canonical."""
        shown = [self._shown(block) for block in blocks]
        del self.line[shown[0].number :]
        del self.balances[shown[0].number :]
        for block, one in zip(blocks, shown, strict=True):
            self.balances.append(_balances_after(block, self.balances[-1]))
            self.line.append(one)
            self.known[one.hash] = one
        return shown

    @staticmethod
    def _shown(block: Block) -> Shown:
        return Shown(
            block.header.number,
            f"0x{block.header.hash.hex()}",
            f"0x{block.header.parent_hash.hex()}",
            [f"0x{each.hash.hex()}" for each in block.transactions],
            encode_block(block),
        )


def _address(holder: Signer) -> bytes:
    return bytes(holder.address)


def _balances_after(block: Block, before: dict[bytes, int]) -> dict[bytes, int]:
    """Return the holders' tokens after a block of calls to transfer(address,uint256)."""
    after = dict(before)
    for transaction in block.transactions:
        receiver = transaction.data[16:36]
        amount = int.from_bytes(transaction.data[36:68], "big")
        after[bytes(transaction.sender)] -= amount
        after[bytes(receiver)] += amount
    return after
