"""Looks at the block after the one in execution, and has read what it will need."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from nodeapi.chain.prefetch import Prefetch
from nodeapi.evm.blocks import Block, decode_block
from nodeapi.evm.errors import InvalidBlock
from nodeapi.evm.rlp import RlpError

if TYPE_CHECKING:
    from nodeapi.chain.state_reader import CachedState


class Lookahead:
    """What is known of the next block; what it will read is a guess, see `Prefetch`."""

    def __init__(self) -> None:
        self._guess = Prefetch()
        self._raw: bytes | None = None
        self._block: Block | None = None
        """The block that the state expects, and its RLP."""

    def decode(self, raw: bytes) -> Block:
        """Return a block. Raises: RlpError for what is none."""
        if self._block is not None and raw is self._raw:
            return self._block
        return decode_block(raw)

    def provide(self, block: Block, state: CachedState) -> None:
        """Have in the state what a block will read, unless it was prepared."""
        if block is not self._block:
            state.fetch(self._guess.accounts(block), self._guess.slots(block))

    def prepare(self, raw: bytes | None, state: CachedState) -> None:
        """Have read what the block after the next one needs, while that is executed."""
        self._raw = self._block = None
        if raw is None:
            return
        with suppress(InvalidBlock, RlpError):  # it is told when its turn comes
            block = decode_block(raw)
            if state.expect(self._guess.accounts(block), self._guess.slots(block)):
                self._raw, self._block = raw, block

    def learn(self, block: Block, state: CachedState) -> None:
        """Learn from what had to be read on its own in the execution of a block."""
        self._guess.learn(block, state.missed_slots)

    def forget(self) -> None:
        """Take it that nothing was prepared: the state is another one."""
        self._raw = self._block = None
