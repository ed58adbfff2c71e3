"""The block in which a call is executed, with the properties that calls can read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain, islice, repeat
from typing import TYPE_CHECKING, TypeVar

from eth_typing import Address, Hash32

from evm.blob_gas import blob_base_fee
from evm.context import ANCESTORS_READABLE, BlockContext

if TYPE_CHECKING:
    from evm.chain_config import ChainConfig
    from evm.headers import Header
    from evm.rules.fork import Fork
    from evm.simulation.overrides import BlockOverrides

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class CallBlock:
    """The block's properties that instructions read, and its rules."""

    config: ChainConfig
    fork: Fork
    number: int
    timestamp: int
    """Unix seconds."""
    coinbase: Address
    gas_limit: int
    difficulty: int
    mix_hash: Hash32
    """PREVRANDAO after the merge."""
    is_merged: bool
    base_fee: int | None
    """Wei per gas; None before London."""
    blob_base_fee: int | None
    """Wei per blob gas; None before Cancun."""
    slot_number: int
    """Of the beacon chain; 0 before Amsterdam."""
    ancestor_hashes: Iterable[Hash32]
    """From the block before this one on, newest first; iterated when BLOCKHASH needs
    them."""

    @classmethod
    def of_header(
        cls,
        header: Header,
        config: ChainConfig,
        fork: Fork,
        ancestor_hashes: Iterable[Hash32],
    ) -> CallBlock:
        """Return the block that a header describes.

        ancestor_hashes: from the parent's on.
        """
        blob_fee, parameters = None, fork.blob_parameters
        if header.excess_blob_gas is not None and parameters is not None:
            fraction = parameters.base_fee_update_fraction
            blob_fee = blob_base_fee(header.excess_blob_gas, fraction)
        return cls(
            config=config,
            fork=fork,
            number=header.number,
            timestamp=header.timestamp,
            coinbase=header.coinbase,
            gas_limit=header.gas_limit,
            difficulty=header.difficulty,
            mix_hash=header.mix_hash,
            is_merged=header.difficulty == 0,
            base_fee=header.base_fee_per_gas,
            blob_base_fee=blob_fee,
            slot_number=header.slot_number or 0,
            ancestor_hashes=ancestor_hashes,
        )

    def overridden(self, overrides: BlockOverrides) -> CallBlock:
        """Return the block with overridden properties, and the fork of its new place.

        As in geth, PREVRANDAO makes the block a merged one, except before London.
        BLOCKHASH keeps returning hashes by their real numbers, and zero from this
        block's real number on.

        Raises: UnsupportedFork.
        """
        number = _either(overrides.number, self.number)
        timestamp = _either(overrides.time, self.timestamp)
        block = self
        if overrides.fork is None:
            merges = overrides.prev_randao is not None
            fork, is_merged = self._fork_at(number, timestamp, merges)
        else:
            fork = self.config.named_fork(overrides.fork)
            block, is_merged = self.under(fork), fork.is_merged
        hashes = self.ancestor_hashes
        if number != self.number:
            hashes = _Shifted(hashes, number - self.number)
        return replace(
            block,
            fork=fork,
            number=number,
            timestamp=timestamp,
            is_merged=is_merged,
            coinbase=_either(overrides.fee_recipient, self.coinbase),
            gas_limit=_either(overrides.gas_limit, self.gas_limit),
            difficulty=_either(overrides.difficulty, self.difficulty),
            mix_hash=_either(overrides.prev_randao, block.mix_hash),
            base_fee=_either(overrides.base_fee_per_gas, block.base_fee),
            blob_base_fee=_either(overrides.blob_base_fee, block.blob_base_fee),
            slot_number=_either(overrides.slot_number, self.slot_number),
            ancestor_hashes=hashes,
        )

    def _fork_at(self, number: int, timestamp: int, merges: bool) -> tuple[Fork, bool]:
        """Return the fork of another place, and whether the block is merged there.

        merges: whether it is merged although it is not at its own place.

        Raises: UnsupportedFork.
        """
        fork = self.config.fork_at(number, timestamp, is_merged=False)
        is_merged = (self.is_merged or merges) and fork.has_base_fee
        if is_merged:
            fork = self.config.fork_at(number, timestamp, is_merged)
        return fork, is_merged

    def under(self, fork: Fork) -> CallBlock:
        """Return the block with the rules of another fork.

        The block keeps its fees. Properties that it lacks are 0. Without excess blob gas,
        the base fee of blob gas is therefore 1 wei.
        """
        base_fee, blob_fee, mix_hash = None, None, self.mix_hash
        if fork.has_base_fee:
            base_fee = self.base_fee or 0
        if fork.blob_parameters is not None:
            fraction = fork.blob_parameters.base_fee_update_fraction
            blob_fee = _either(self.blob_base_fee, blob_base_fee(0, fraction))
        if fork.is_merged and not self.is_merged:
            mix_hash = Hash32(bytes(32))  # that of a mined block is no random number
        return replace(
            self,
            fork=fork,
            is_merged=fork.is_merged,
            base_fee=base_fee,
            blob_base_fee=blob_fee,
            mix_hash=mix_hash,
        )

    def context(self, *, is_free: bool) -> BlockContext:
        """Return what instructions read.

        is_free: BASEFEE returns 0, because gas costs nothing.
        """
        return BlockContext(
            coinbase=self.coinbase,
            timestamp=self.timestamp,
            number=self.number,
            difficulty=self.difficulty,
            mix_hash=self.mix_hash,
            gas_limit=self.gas_limit,
            ancestor_hashes=self.ancestor_hashes,
            chain_id=self.config.chain_id,
            base_fee=0 if is_free else self.base_fee or 0,
            slot_number=self.slot_number,
        )


class _Shifted:
    """Ancestor hashes of a block whose number is overridden, relative to that number."""

    def __init__(self, hashes: Iterable[Hash32], distance: int) -> None:
        """distance: the overridden number minus the real one."""
        self._hashes = hashes
        self._distance = distance

    def __iter__(self) -> Iterator[Hash32]:
        if self._distance < 0:
            return islice(self._hashes, -self._distance, None)
        unknown = repeat(Hash32(bytes(32)), min(self._distance, ANCESTORS_READABLE))
        return chain(unknown, self._hashes)


def _either(overridden: T | None, real: T) -> T:
    return real if overridden is None else overridden
