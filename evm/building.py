"""A block from transactions, on the state of its parent, with all values of its header.

Source: go-ethereum v1.17.10, miner/worker.go (prepareWork, generateWork), core/block_validator.go
(CalcGasLimit)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from eth_typing import Address, Hash32

from evm.blob_gas import next_excess_blob_gas
from evm.blocks import Block, Withdrawal
from evm.errors import InvalidTransaction
from evm.execution import BlockExecution, Outcome
from evm.header_rules import ELASTICITY, next_base_fee
from evm.headers import EMPTY_UNCLES_HASH, ZERO_HASH, ZERO_NONCE, Header
from evm.receipts import BLOOM_BYTES
from evm.requests import requests_hash
from evm.transactions import GAS_PER_BLOB, Transaction
from evm.trie import EMPTY_ROOT, ordered_root

if TYPE_CHECKING:
    from evm.chain_config import ChainConfig
    from evm.rules.fork import Fork
    from evm.state_roots import StateRoots
    from evm.world import World

GAS_LIMIT = 60_000_000
"""Gas limit that built blocks approach: geth's default."""
MIN_GAS_LIMIT = 5000
GAS_LIMIT_DIVISOR = 1024
"""A block's gas limit differs from its parent's by less than this fraction."""


class InvalidAttributes(Exception):
    """Raised when a block can't have the requested attributes. `str` is geth's text."""


class TransactionRefused(Exception):
    """Raised when a transaction is invalid at its position. `str` is geth's text.

    is_outdated: whether its nonce was used before.
    """

    def __init__(self, text: str, *, is_outdated: bool = False) -> None:
        self.is_outdated = is_outdated
        super().__init__(text)


@dataclass(frozen=True, slots=True)
class Attributes:
    """The values of a block that the consensus client sets.

    withdrawals: None before Shanghai. beacon_root: None before Cancun. slot_number: None
        before Amsterdam. gas_limit: the gas limit to approach, from Amsterdam on.
    """

    timestamp: int
    fee_recipient: Address
    mix_hash: Hash32
    withdrawals: Sequence[Withdrawal] | None
    beacon_root: Hash32 | None
    slot_number: int | None = None
    gas_limit: int | None = None
    extra_data: bytes = b""


@dataclass(frozen=True, slots=True)
class Built:
    """A finished block. fees: wei that its transactions pay to the fee recipient."""

    block: Block
    outcome: Outcome
    fees: int


def next_gas_limit(parent_limit: int, wanted: int = GAS_LIMIT) -> int:
    """Return the child block's gas limit: as near to the wanted one as the rules allow."""
    step = parent_limit // GAS_LIMIT_DIVISOR - 1
    wanted = max(wanted, MIN_GAS_LIMIT)
    if parent_limit < wanted:
        return min(parent_limit + step, wanted)
    return max(parent_limit - step, wanted)


def draft_header(parent: Header, fork: Fork, attributes: Attributes) -> Header:
    """Return a block's header without the values that result from its execution.

    fork: that of the new block, which is after the merge.

    Raises: InvalidAttributes.
    """
    if attributes.timestamp <= parent.timestamp:
        raise InvalidAttributes(
            f"invalid timestamp, parent {parent.timestamp} given {attributes.timestamp}"
        )
    if not fork.is_merged:
        raise InvalidAttributes("blocks before the merge can't be built")
    if attributes.withdrawals and not fork.has_withdrawals:
        raise InvalidAttributes("withdrawals set before Shanghai activation")
    if fork.has_parent_beacon_root and attributes.beacon_root is None:
        raise InvalidAttributes("parent beacon block root is missing")
    has_list = fork.has_block_access_list
    if has_list and attributes.slot_number is None:
        raise InvalidAttributes("no slot number set post-amsterdam")
    limit, wanted = parent.gas_limit, GAS_LIMIT
    if has_list and attributes.gas_limit is not None:
        wanted = attributes.gas_limit
    if fork.has_base_fee and parent.base_fee_per_gas is None:
        limit *= ELASTICITY
    return Header(
        parent_hash=parent.hash,
        uncles_hash=EMPTY_UNCLES_HASH,
        coinbase=attributes.fee_recipient,
        state_root=ZERO_HASH,
        transactions_root=ZERO_HASH,
        receipts_root=ZERO_HASH,
        logs_bloom=bytes(BLOOM_BYTES),
        difficulty=0,
        number=parent.number + 1,
        gas_limit=next_gas_limit(limit, wanted),
        gas_used=0,
        timestamp=attributes.timestamp,
        extra_data=attributes.extra_data,
        mix_hash=attributes.mix_hash,
        nonce=ZERO_NONCE,
        base_fee_per_gas=next_base_fee(parent) if fork.has_base_fee else None,
        withdrawals_root=Hash32(EMPTY_ROOT) if fork.has_withdrawals else None,
        blob_gas_used=0 if fork.has_blobs else None,
        excess_blob_gas=_excess_blob_gas(parent, fork) if fork.has_blobs else None,
        parent_beacon_root=attributes.beacon_root
        if fork.has_parent_beacon_root
        else None,
        requests_hash=ZERO_HASH if fork.has_requests else None,
        block_access_list_hash=ZERO_HASH if has_list else None,
        slot_number=attributes.slot_number if has_list else None,
    )


class BlockBuilding:
    """A block that is being built. Transactions are added one by one."""

    def __init__(
        self,
        header: Header,
        fork: Fork,
        config: ChainConfig,
        world: World,
        ancestor_hashes: Iterable[Hash32],
        state_root: StateRoots,
        withdrawals: Sequence[Withdrawal] | None,
    ) -> None:
        """Execute the start of the block.

        header: from `draft_header`. world: on the parent's state.
        ancestor_hashes: the parent's first.
        """
        self.header = header
        self.fork = fork
        self._world = world
        self._state_root = state_root
        self._withdrawals = tuple(withdrawals or ()) if fork.has_withdrawals else None
        self._execution = BlockExecution(
            header, fork, config, world, ancestor_hashes, state_root
        )
        self._transactions: list[Transaction] = []
        self._fees = 0
        self._execution.begin()

    @property
    def gas_left(self) -> int:
        """The largest gas limit that the next transaction can have."""
        return self._execution.gas_left

    @property
    def blobs_left(self) -> int:
        """Number of blobs that further transactions can have."""
        parameters = self.fork.blob_parameters
        if parameters is None:
            return 0
        return parameters.max - self._execution.blob_gas_used // GAS_PER_BLOB

    @property
    def gas_used(self) -> int:
        """Gas of the transactions so far."""
        return self._execution.gas_used

    def tip_of(self, transaction: Transaction) -> int:
        """Return the wei per gas that the fee recipient would get; may be negative."""
        return min(
            transaction.max_priority_fee_per_gas,
            transaction.max_fee_per_gas - (self.header.base_fee_per_gas or 0),
        )

    def add(self, transaction: Transaction) -> None:
        """Execute the next transaction.

        Raises: TransactionRefused; the block is as before.
        """
        blobs = len(transaction.blob_versioned_hashes)
        if self.fork.has_blobs and blobs > self.blobs_left:
            raise TransactionRefused("max data blobs reached")
        try:
            receipt = self._execution.apply_transaction(transaction)
        except InvalidTransaction as error:
            raise TransactionRefused(
                error.text, is_outdated=error.is_outdated
            ) from error
        self._transactions.append(transaction)
        self._fees += receipt.gas_used * self.tip_of(transaction)

    def finish(self) -> Built:
        """Execute the end of the block, and return it with all values of its header."""
        outcome = self._execution.finish((), self._withdrawals)
        header = replace(
            self.header,
            state_root=self._state_root(),
            transactions_root=_root([each.raw for each in self._transactions]),
            receipts_root=_root([each.encode() for each in outcome.receipts]),
            logs_bloom=outcome.bloom.to_bytes(BLOOM_BYTES, "big"),
            gas_used=outcome.gas_used,
        )
        if self._withdrawals is not None:
            root = _root([each.encode() for each in self._withdrawals])
            header = replace(header, withdrawals_root=root)
        if self.fork.has_blobs:
            used = self._execution.blob_gas_used
            header = replace(header, blob_gas_used=used)
        if outcome.requests is not None:
            header = replace(header, requests_hash=requests_hash(outcome.requests))
        if outcome.access_list is not None:
            list_hash = outcome.access_list.hash
            header = replace(header, block_access_list_hash=list_hash)
        block = Block(header, tuple(self._transactions), (), self._withdrawals)
        return Built(block, outcome, self._fees)


def _excess_blob_gas(parent: Header, fork: Fork) -> int:
    return next_excess_blob_gas(
        parent.excess_blob_gas or 0,
        parent.blob_gas_used or 0,
        parent.base_fee_per_gas or 0,
        fork,
    )


def _root(values: list[bytes]) -> Hash32:
    return Hash32(ordered_root(values))
