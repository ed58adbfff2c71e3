"""A guess at what a block will read, so that it can be read in two questions.

Which accounts a block needs stands in it. Which slots it needs follows from how Solidity
lays out mappings: element `key` of the mapping at position `p` is at keccak(key ‖ p),
and for tokens the keys are mostly the sender and the addresses in the call's data. At
which positions a contract has mappings is learned from slots that were read and had
not been guessed. A wrong guess costs a look into an index; what was not guessed is read
when it is needed, as always.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from eth_typing import Address
from eth_utils.exceptions import ValidationError
from lru import LRU

from nodeapi.chain.abi import mapping_slot
from nodeapi.evm.transactions import CREATE_ADDRESS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from nodeapi.chain.state_reader import Slot
    from nodeapi.evm.blocks import Block
    from nodeapi.evm.transactions import Transaction

POSITIONS = range(16)
"""Where mappings are looked for: contracts declare them among their first variables."""

WORDS = 4
"""Parameters of a call that are looked at."""

LEARNED_FROM = 16
"""Transactions of a block that are learned from, each costing 0.1 ms at most."""

CONTRACTS_KNOWN = 10_000

_ADDRESS_PADDING = bytes(12)
"""Amounts have it too, but more zeros follow: below 2**128 a word is taken for one."""


class Prefetch:
    """Guesses, and learns from what the guess has missed."""

    def __init__(self) -> None:
        self._positions: LRU[Address, set[int]] = LRU(CONTRACTS_KNOWN)

    def accounts(self, block: Block) -> set[Address]:
        """Return accounts that the block will read."""
        addresses = {block.header.coinbase}
        addresses.update(w.address for w in block.withdrawals or ())
        for transaction in block.transactions:
            addresses.add(transaction.to)
            with suppress(ValidationError):  # its execution will say so
                addresses.add(transaction.sender)
        addresses.discard(CREATE_ADDRESS)
        return addresses

    def slots(self, block: Block) -> set[Slot]:
        """Return slots that the block will probably read."""
        return {
            (transaction.to, mapping_slot(key, position))
            for transaction in block.transactions
            for position in self._positions.get(transaction.to, ())
            for key in _keys(transaction)
        }

    def learn(self, block: Block, missed: Collection[Slot]) -> None:
        """Learn from the slots that the block has read and the guess did not name."""
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
    """Yield the addresses that a call is about: its sender's, and its parameters'."""
    with suppress(ValidationError):
        yield transaction.sender
    data = transaction.data
    for start in range(4, min(len(data), 4 + 32 * WORDS), 32):
        word = data[start : start + 32]
        if word.startswith(_ADDRESS_PADDING) and any(word[12:16]) and len(word) == 32:
            yield Address(word[12:])
