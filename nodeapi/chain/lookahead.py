"""Lookahead: prefetch the data of the next block while a block is executed."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from eth_typing import Address
from eth_utils.exceptions import ValidationError
from lru import LRU

from abi.encoding import mapping_slot
from evm import rlp
from evm.block_keys import known_keys, named_accounts
from evm.blocks import Block, decode_block
from evm.chain_config import UnsupportedFork
from evm.errors import InvalidBlock
from evm.proved_state import Keys
from evm.rlp import RlpError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from evm.blocks import Block
    from evm.transactions import Transaction
    from nodeapi.chain.state_reader import CachedState, Slot

AMSTERDAM_FIELDS = 23
"""Number of header fields from Amsterdam on."""


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

        Raises: RlpError if it is malformed; UnsupportedFork for a block of a fork after
            Amsterdam that has more header fields.
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
            state.fetch(named_accounts(block), self._guess.slots(block))

    def guess(self, block: Block) -> Keys:
        """Return what a block will probably read."""
        keys = known_keys(block)
        keys.slots |= self._guess.slots(block)
        return keys

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
            if state.expect(named_accounts(block), self._guess.slots(block)):
                self._raw, self._block = raw, block

    def learn(self, block: Block, state: CachedState) -> None:
        """Improve the predictions by the slots that an execution had to read individually."""
        self._guess.learn(block, state.missed_slots)

    def forget(self) -> None:
        """Discard the prefetched block, because the state has changed."""
        self._raw = self._block = None


def _refuse_later_fork(raw: bytes) -> None:
    """Raise UnsupportedFork if a header has more fields than those of Amsterdam.

    Raises: RlpError.
    """
    fields = rlp.list_items(rlp.list_items(raw)[0])
    if len(fields) > AMSTERDAM_FIELDS:
        number = rlp.decode_int(rlp.decode(fields[8]), 8)
        name = f"a fork with {len(fields)} header fields"
        raise UnsupportedFork(name, f"block {number}")


POSITIONS = range(16)
"""Possible positions of mappings. Contracts declare them among their first variables.
"""

WORDS = 4
"""Number of parameters of a call that are considered."""

LEARNED_FROM = 16
"""Maximum number of a block's transactions to learn from. Each costs 0.1 ms at most."""

CONTRACTS_KNOWN = 10_000

_ADDRESS_PADDING = bytes(12)
"""Zero bytes before an address in a word. Amounts have them, too, but usually with more
zeros: a word below 2**128 is treated as an amount."""


class Prefetch:
    """Predicts slots, and improves the predictions by slots that it has missed."""

    def __init__(self) -> None:
        self._positions: LRU[Address, set[int]] = LRU(CONTRACTS_KNOWN)

    def slots(self, block: Block) -> set[Slot]:
        """Return the slots that the block will probably read."""
        return {
            (transaction.to, mapping_slot(key, position))
            for transaction in block.transactions
            for position in self._positions.get(transaction.to, ())
            for key in _keys(transaction)
        }

    def learn(self, block: Block, missed: Collection[Slot]) -> None:
        """Learn mapping positions from slots that were read without being guessed."""
        if not missed:
            return
        contracts = {address for address, _ in missed}
        calls = (t for t in block.transactions if t.to in contracts)
        for _, call in zip(range(LEARNED_FROM), calls, strict=False):
            known = self._positions.get(call.to, set())
            found = {
                position
                for position in POSITIONS
                if position not in known
                for key in _keys(call)
                if (call.to, mapping_slot(key, position)) in missed
            }
            if found:
                self._positions[call.to] = known | found


def _keys(transaction: Transaction) -> Iterator[Address]:
    """Yield probable mapping keys: the sender, and the addresses in the call data."""
    with suppress(ValidationError):
        yield transaction.sender
    data = transaction.data
    for start in range(4, min(len(data), 4 + 32 * WORDS), 32):
        word = data[start : start + 32]
        if word.startswith(_ADDRESS_PADDING) and any(word[12:16]) and len(word) == 32:
            yield Address(word[12:])
