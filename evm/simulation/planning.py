"""The blocks of a simulation: their numbers and timestamps, and their headers.

Source: go-ethereum internal/ethapi/simulate.go, `sanitizeChain` and `makeHeaders`
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

from evm.blob_gas import next_excess_blob_gas
from evm.header_rules import next_base_fee
from evm.headers import (
    EMPTY_TRIE_ROOT,
    EMPTY_UNCLES_HASH,
    ZERO_HASH,
    ZERO_NONCE,
    Header,
)
from evm.simulation.errors import (
    BLOCK_NUMBER_INVALID,
    BLOCK_TIMESTAMP_INVALID,
    CLIENT_LIMIT_EXCEEDED,
    INVALID_PARAMS,
    SimulationError,
)
from evm.simulation.overrides import BlockOverrides

if TYPE_CHECKING:
    from evm.chain_config import ChainConfig
    from evm.rules.fork import Fork
    from evm.simulation.arguments import CallArguments
    from evm.simulation.overrides import StateOverrides

_T = TypeVar("_T")

MAX_BLOCKS = 256
"""Maximum number of blocks of a simulation, empty ones included."""
MAX_CALLS_IN_BLOCK = 5000
MAX_CALLS = 10_000
"""Maximum number of calls of all blocks together."""
SECONDS_BETWEEN_BLOCKS = 12


@dataclass(frozen=True, slots=True)
class BlockCalls:
    """One entry of `blockStateCalls`: a block to simulate."""

    overrides: BlockOverrides = field(default_factory=BlockOverrides)
    state_overrides: StateOverrides | None = None
    calls: Sequence[CallArguments] = ()


@dataclass(frozen=True, slots=True)
class PlannedBlock:
    """A block with its number and timestamp."""

    number: int
    timestamp: int
    """Unix seconds."""
    request: BlockCalls


def check_counts(calls: Sequence[int]) -> None:
    """Check the size of a simulation. calls: the number of calls in each block.

    Raises: SimulationError.
    """
    if len(calls) > MAX_BLOCKS:
        raise SimulationError(CLIENT_LIMIT_EXCEEDED, "too many blocks")
    total = 0
    for count in calls:
        if count > MAX_CALLS_IN_BLOCK:
            raise SimulationError(
                CLIENT_LIMIT_EXCEEDED,
                f"too many calls in block: {count} > {MAX_CALLS_IN_BLOCK}",
            )
        total += count
        if total > MAX_CALLS:
            raise SimulationError(
                CLIENT_LIMIT_EXCEEDED, f"too many calls: {total} > {MAX_CALLS}"
            )


def plan_blocks(requests: Sequence[BlockCalls], base: Header) -> list[PlannedBlock]:
    """Return the blocks with ascending numbers and timestamps.

    Empty blocks fill gaps between numbers. base: the block below the first one.

    Raises: SimulationError.
    """
    planned: list[PlannedBlock] = []
    number, timestamp = base.number, base.timestamp
    for request in requests:
        wanted = request.overrides.number
        if wanted is None:
            wanted = number + 1
        if wanted <= number:
            raise SimulationError(
                BLOCK_NUMBER_INVALID,
                f"block numbers must be in order: {wanted} <= {number}",
            )
        if wanted - base.number > MAX_BLOCKS:
            raise SimulationError(CLIENT_LIMIT_EXCEEDED, "too many blocks")
        for empty in range(number + 1, wanted):
            timestamp = _after(timestamp)
            planned.append(PlannedBlock(empty, timestamp, BlockCalls()))
        number = wanted
        time = request.overrides.time
        if time is None:
            time = _after(timestamp)
        elif time <= timestamp:
            raise SimulationError(
                BLOCK_TIMESTAMP_INVALID,
                f"block timestamps must be in order: {time} <= {timestamp}",
            )
        timestamp = time
        planned.append(PlannedBlock(number, timestamp, request))
    return planned


def check_difficulties(
    planned: Sequence[PlannedBlock], base: Header, config: ChainConfig
) -> None:
    """Check that no block after the merge has an overridden difficulty.

    base: the block below the first one. Raises: SimulationError.
    """
    difficulty = base.difficulty
    for block in planned:
        is_merged = _is_merged(block, difficulty, config)
        if is_merged:
            difficulty = 0
        overridden = block.request.overrides.difficulty
        if overridden is None:
            continue
        if is_merged:
            raise SimulationError(
                INVALID_PARAMS,
                f"block {block.number}: difficulty override is not allowed after the "
                "merge",
            )
        difficulty = overridden


def _is_merged(
    block: PlannedBlock, parent_difficulty: int, config: ChainConfig
) -> bool:
    """Return whether a block is after the merge, by its own `fork` if it has one."""
    fork = block.request.overrides.fork
    if fork is not None:
        return config.named_fork(fork).is_merged
    if config.is_surely_merged(block.number, block.timestamp):
        return True
    return parent_difficulty == 0


def _after(timestamp: int) -> int:
    """Return the default timestamp of the next block, a number of 64 bits."""
    return (timestamp + SECONDS_BETWEEN_BLOCKS) % 2**64


def header_before_execution(
    planned: PlannedBlock, parent: Header, config: ChainConfig, *, validates: bool
) -> tuple[Header, Fork]:
    """Return a block's header without the results of its execution, and its fork.

    Miner and gas limit are the parent's unless they are overridden.

    parent: the complete header of the block before. validates: whether the base fee
        follows the parent's. Otherwise it is 0 unless it is overridden.

    Raises: InvalidChainConfig, UnsupportedFork.
    """
    number, timestamp = planned.number, planned.timestamp
    overrides = planned.request.overrides
    difficulty = 0
    if not _is_merged(planned, parent.difficulty, config):
        difficulty = _or(overrides.difficulty, parent.difficulty)
    if overrides.fork is None:
        fork = config.fork_at(number, timestamp, is_merged=difficulty == 0)
    else:
        fork = config.named_fork(overrides.fork)
    # geth overrides the base fee even before London, where it has no effect on gas.
    base_fee = overrides.base_fee_per_gas
    if base_fee is None and fork.has_base_fee:
        base_fee = next_base_fee(parent) if validates else 0
    header = Header(
        parent_hash=parent.hash,
        uncles_hash=EMPTY_UNCLES_HASH,
        coinbase=_or(overrides.fee_recipient, parent.coinbase),
        state_root=ZERO_HASH,
        transactions_root=EMPTY_TRIE_ROOT,
        receipts_root=EMPTY_TRIE_ROOT,
        logs_bloom=bytes(256),
        difficulty=difficulty,
        number=number,
        gas_limit=_or(overrides.gas_limit, parent.gas_limit),
        gas_used=0,
        timestamp=timestamp,
        extra_data=b"",
        mix_hash=_or(overrides.prev_randao, ZERO_HASH),
        nonce=ZERO_NONCE,
        base_fee_per_gas=base_fee,
        withdrawals_root=EMPTY_TRIE_ROOT if fork.has_withdrawals else None,
    )
    if not fork.has_blobs:
        return header, fork
    # A parent before Cancun has no excess blob gas.
    excess = 0
    if parent.excess_blob_gas is not None:
        excess = next_excess_blob_gas(
            parent.excess_blob_gas,
            parent.blob_gas_used or 0,
            parent.base_fee_per_gas or 0,
            fork,
        )
    header = replace(
        header,
        blob_gas_used=0,
        excess_blob_gas=excess,
        parent_beacon_root=_or(overrides.beacon_root, ZERO_HASH),
    )
    if fork.has_block_access_list:
        header = replace(
            header,
            requests_hash=ZERO_HASH,
            block_access_list_hash=ZERO_HASH,
            slot_number=_slot_number(parent, overrides),
        )
    return header, fork


def _slot_number(parent: Header, overrides: BlockOverrides) -> int | None:
    """Return the slot number of a block, None if that of its parent is not known.

    A fork in place of the block's own has the number 0 then.
    """
    if overrides.slot_number is not None:
        return overrides.slot_number
    if parent.slot_number is not None:
        return parent.slot_number + 1
    return None if overrides.fork is None else 0


def _or(value: _T | None, default: _T) -> _T:
    """Return an overriding value, otherwise the default."""
    return default if value is None else value
