"""Lookahead: prefetch the data of the next block while a block is executed."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from evm import rlp
from evm.blocks import Block, decode_block
from evm.chain_config import UnsupportedFork
from evm.errors import InvalidBlock
from evm.rlp import RlpError
from nodeapi.chain.prefetch import Prefetch

if TYPE_CHECKING:
    from nodeapi.chain.state_reader import CachedState

PRAGUE_FIELDS = 21
"""Number of header fields from Prague on."""

AMSTERDAM_FIELDS = 23


class Lookahead:
    """The next block, and a prediction of its reads (see `Prefetch`)."""

    def __init__(self) -> None:
        self._guess = Prefetch()
        self._raw: bytes | None = None
        self._block: Block | None = None
        """The decoded next block, if its data is being prefetched. `_raw` is its RLP.
        """

    def decode(self, raw: bytes) -> Block:
        """Decode a block.

        Raises: RlpError if it is malformed; UnsupportedFork for a block of Amsterdam or a
            later fork.
        """
        if self._block is not None and raw is self._raw:
            return self._block
        try:
            return decode_block(raw)
        except RlpError:
            _refuse_later_fork(raw)
            raise

    def provide(self, block: Block, state: CachedState) -> None:
        """Load the data that a block will probably read, unless it was prefetched."""
        if block is not self._block:
            state.fetch(self._guess.accounts(block), self._guess.slots(block))

    def prepare(self, raw: bytes | None, state: CachedState) -> None:
        """Start to prefetch the data of the next block.

        raw: the block's RLP, or None if there is no next block.
        """
        self._raw = self._block = None
        if raw is None:
            return
        # The importer reports these errors when it reaches the block.
        with suppress(InvalidBlock, RlpError):
            block = decode_block(raw)
            if state.expect(self._guess.accounts(block), self._guess.slots(block)):
                self._raw, self._block = raw, block

    def learn(self, block: Block, state: CachedState) -> None:
        """Improve the predictions by the slots that an execution had to read individually."""
        self._guess.learn(block, state.missed_slots)

    def forget(self) -> None:
        """Discard the prefetched block, because the state has changed."""
        self._raw = self._block = None


def _refuse_later_fork(raw: bytes) -> None:
    """Raise UnsupportedFork if a header has more fields than before Amsterdam.

    Files that geth exports have the block's access list as a fifth part.

    Raises: RlpError.

    Source: EIP-7928, EIP-7843; go-ethereum v1.17.10, core/types/block.go
    """
    fields = rlp.list_items(rlp.list_items(raw)[0])
    if len(fields) > PRAGUE_FIELDS:
        number = rlp.decode_int(rlp.decode(fields[8]), 8)
        is_amsterdam = len(fields) == AMSTERDAM_FIELDS
        name = (
            "amsterdam" if is_amsterdam else f"a fork with {len(fields)} header fields"
        )
        raise UnsupportedFork(name, f"block {number}")
