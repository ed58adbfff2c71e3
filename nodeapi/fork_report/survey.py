"""Figures about the transactions of blocks, by their own rules and by those of a fork.

Their size does not depend on the number of transactions, but on that of called functions.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from math import floor, log10

from eth_typing import Address, Hash32

BINS_PER_DECADE = 12
"""Bins of gas between a power of ten and the next one."""
EXAMPLES = 3
"""Transactions that are kept for each failure."""


class Change(StrEnum):
    """What another fork does to a transaction."""

    NONE = "none"
    """Its status is the same."""
    FAILS = "fails"
    """It fails, whatever its gas limit is."""
    REFUSED = "refused"
    """No block could have it, whatever its gas limit is."""
    NEEDS_GAS = "needs-gas"
    """It fails or is refused, but succeeds with a higher gas limit."""
    SUCCEEDS = "succeeds"
    """It succeeds, and had failed."""


@dataclass(frozen=True, slots=True)
class Effect:
    """What another fork does to one transaction."""

    transaction_hash: Hash32
    contract: Address | None
    """The called account, None for a creation."""
    selector: bytes
    """The first 4 bytes of its call data; b"" for a transfer or a creation."""
    change: Change
    gas_before: int
    gas_after: int | None
    """Gas used; with a higher gas limit if it needs one. None if it is refused."""
    error: str
    """geth's text of the failure, without figures; "" if it does not fail."""


Function = tuple[Address | None, bytes]
"""A called account and a selector."""


@dataclass(slots=True)
class Tally:
    """Sums of the transactions that call one function, refused ones excluded."""

    transactions: int = 0
    gas_before: int = 0
    gas_after: int = 0

    def add(self, transactions: int, gas_before: int, gas_after: int) -> None:
        """Add transactions."""
        self.transactions += transactions
        self.gas_before += gas_before
        self.gas_after += gas_after


@dataclass(slots=True)
class Failure:
    """Transactions that fail in the same way."""

    count: int = 0
    examples: list[Hash32] = field(default_factory=list)

    def add(self, count: int, examples: list[Hash32]) -> None:
        """Add transactions. Some are kept as examples."""
        self.count += count
        self.examples += examples[: EXAMPLES - len(self.examples)]


@dataclass(slots=True)
class Survey:
    """Figures about blocks."""

    blocks: int = 0
    forks: set[str] = field(default_factory=set)
    """The blocks' own forks."""
    changes: Counter[Change] = field(default_factory=Counter)
    total: Tally = field(default_factory=Tally)
    functions: dict[Function, Tally] = field(default_factory=dict)
    failures: dict[tuple[Function, Change, str], Failure] = field(default_factory=dict)
    bins: Counter[tuple[int, int, Change]] = field(default_factory=Counter)
    """Number of transactions by the bins of their gas before and after."""

    @property
    def transactions(self) -> int:
        """Number of transactions."""
        return self.changes.total()

    def add(self, effect: Effect) -> None:
        """Add a transaction."""
        function = effect.contract, effect.selector
        self.changes[effect.change] += 1
        before, after = effect.gas_before, effect.gas_after
        if after is not None:
            self.total.add(1, before, after)
            self._tally(function).add(1, before, after)
            self.bins[bin_of(before), bin_of(after), effect.change] += 1
        if effect.error:
            key = function, effect.change, effect.error
            self._failure(key).add(1, [effect.transaction_hash])

    def merge(self, other: Survey) -> None:
        """Add the figures of other blocks."""
        self.blocks += other.blocks
        self.forks |= other.forks
        self.changes += other.changes
        self.bins += other.bins
        total = other.total
        self.total.add(total.transactions, total.gas_before, total.gas_after)
        for function, tally in other.functions.items():
            self._tally(function).add(
                tally.transactions, tally.gas_before, tally.gas_after
            )
        for key, failure in other.failures.items():
            self._failure(key).add(failure.count, failure.examples)

    def _tally(self, function: Function) -> Tally:
        return self.functions.setdefault(function, Tally())

    def _failure(self, key: tuple[Function, Change, str]) -> Failure:
        return self.failures.setdefault(key, Failure())


def bin_of(gas: int) -> int:
    """Return the bin of an amount of gas, on a logarithmic scale."""
    return floor(log10(max(gas, 1)) * BINS_PER_DECADE)
