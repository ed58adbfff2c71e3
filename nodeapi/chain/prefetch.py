"""Predicts the accounts and slots that a block reads, so that two queries suffice.

A block contains the accounts that it needs. The slots follow from Solidity's layout of
mappings: element `key` of the mapping at position `p` is at keccak(key ‖ p). For
tokens, the keys are mostly the sender and the addresses in the call data. The mappings'
positions are learned for each contract from slots that were read without having been
guessed. A wrong guess costs one index lookup. A slot that was not guessed is read
individually when it is needed.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from eth_typing import Address
from eth_utils.exceptions import ValidationError
from lru import LRU

from abi.encoding import mapping_slot
from evm.transactions import CREATE_ADDRESS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from evm.blocks import Block
    from evm.transactions import Transaction
    from nodeapi.chain.state_reader import Slot

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

    def accounts(self, block: Block) -> set[Address]:
        """Return the accounts that the block will read."""
        addresses = {block.header.coinbase}
        addresses.update(w.address for w in block.withdrawals or ())
        for transaction in block.transactions:
            addresses.add(transaction.to)
            with suppress(ValidationError):  # the execution reports it
                addresses.add(transaction.sender)
        addresses.discard(CREATE_ADDRESS)
        return addresses

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
