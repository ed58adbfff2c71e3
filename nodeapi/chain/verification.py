"""A block held against its header: everything that needs no consensus client."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import sha3
from eth_typing import Hash32

from nodeapi.evm import rlp
from nodeapi.evm.changes import Changes
from nodeapi.evm.errors import InvalidBlock
from nodeapi.evm.execution import Outcome, execute_block
from nodeapi.evm.header_rules import validate_header, validate_uncles
from nodeapi.evm.receipts import BLOOM_BYTES
from nodeapi.evm.requests import requests_hash
from nodeapi.evm.trie import ordered_root
from nodeapi.evm.world import World
from nodeapi.tracers.record import RECORD_LIMIT_BYTES
from nodeapi.tracers.recorder import Recorder

if TYPE_CHECKING:
    from nodeapi.evm.blocks import Block
    from nodeapi.evm.chain_config import ChainConfig
    from nodeapi.evm.forks import Fork
    from nodeapi.evm.header_rules import Ancestry
    from nodeapi.evm.headers import Header
    from nodeapi.evm.state_trie import StateTrie
    from nodeapi.evm.world import StateReader


@dataclass(frozen=True, slots=True)
class Parent:
    """What a block is executed on."""

    header: Header
    total_difficulty: int
    ancestor_hashes: Sequence[Hash32]
    """Up to 256, the parent's own first."""
    ancestry: Ancestry
    """The last generations, for the uncle rules."""
    state: StateReader
    trie: StateTrie
    """Stands at the parent's state, and is moved on to the block's."""


@dataclass(frozen=True, slots=True)
class Verified:
    """A block that keeps every promise of its header."""

    block: Block
    fork: Fork
    total_difficulty: int
    outcome: Outcome
    changes: Changes


class StateRoots:
    """The roots of a world's state as its block goes on.

    The trie is moved by what differs from its last position, be that a change or the
    undoing of one: a slot that a later transaction of the block restores must go back.
    """

    def __init__(self, world: World, parent: Parent, fork: Fork) -> None:
        self._world = world
        self._state = parent.state
        self._trie = parent.trie
        self._clears_empty_accounts = fork.clears_empty_accounts
        self.changes = Changes()

    def __call__(self) -> Hash32:
        """Return the root of the state as it stands; `changes` are the block's so far."""
        changes = self._world.changes(clears_empty_accounts=self._clears_empty_accounts)
        moves = Changes()
        for address in self.changes.accounts.keys() - changes.accounts.keys():
            moves.accounts[address] = self._state.account(address)
        for address, values in self.changes.storage.items():
            kept = changes.storage.get(address, {})
            moves.storage[address] = {
                slot: self._state.storage(address, slot)
                for slot in values.keys() - kept.keys()
            }
        moves.apply(changes)
        root = self._trie.apply(moves)
        for address in changes.accounts:
            changes.accounts[address] = moves.accounts[address]
        self.changes = changes
        return root


def verify_block(
    block: Block,
    parent: Parent,
    config: ChainConfig,
    *,
    record_limit_bytes: int | None = RECORD_LIMIT_BYTES,
) -> Verified:
    """Execute a block on its parent and hold the outcome against its header.

    record_limit_bytes: what is recorded of one transaction at most; None: nothing is.
    Raises: InvalidBlock, with the block's number, its hash and the differing field.
    """
    header = block.header
    is_merged = config.is_merged(parent.total_difficulty)
    fork = config.fork_at(header.number, header.timestamp, is_merged)
    world = World(parent.state)
    roots = StateRoots(world, parent, fork)
    recorder = None if record_limit_bytes is None else Recorder(record_limit_bytes)
    try:
        validate_header(header, parent.header, fork, config)
        validate_uncles(block, parent.ancestry, config)
        _check_body(block, fork)
        outcome = execute_block(
            block, fork, config, world, parent.ancestor_hashes, roots, recorder
        )
        _check_outcome(header, outcome)
        _check(header, "state root", header.state_root, roots())
    except InvalidBlock as error:
        raise error.locate(header) from error.__cause__
    if recorder is not None:
        # Records name code; what a later transaction of the block destroyed, too.
        roots.changes.codes.update(recorder.codes)
    return Verified(
        block,
        fork,
        parent.total_difficulty + header.difficulty,
        outcome,
        roots.changes,
    )


def _check_body(block: Block, fork: Fork) -> None:
    header = block.header
    if fork.max_block_size is not None and block.size > fork.max_block_size:
        raise InvalidBlock(
            header, "size", reason=f"{block.size} bytes exceed {fork.max_block_size}"
        )
    _check(
        header,
        "transactions root",
        header.transactions_root,
        ordered_root([transaction.raw for transaction in block.transactions]),
    )
    uncles = rlp.encode([uncle.items() for uncle in block.uncles])
    _check(header, "uncles hash", header.uncles_hash, sha3.keccak_256(uncles).digest())
    if (block.withdrawals is not None) != fork.has_withdrawals:
        raise InvalidBlock(
            header, "withdrawals", fork.has_withdrawals, block.withdrawals is not None
        )
    if block.withdrawals is not None:
        _check(
            header,
            "withdrawals root",
            header.withdrawals_root,
            ordered_root([withdrawal.encode() for withdrawal in block.withdrawals]),
        )
    if fork.has_blobs:
        _check(
            header,
            "blob gas used",
            header.blob_gas_used,
            sum(transaction.blob_gas for transaction in block.transactions),
        )


def _check_outcome(header: Header, outcome: Outcome) -> None:
    _check(header, "gas used", header.gas_used, outcome.gas_used)
    _check(
        header,
        "receipts root",
        header.receipts_root,
        ordered_root([receipt.encode() for receipt in outcome.receipts]),
    )
    bloom = outcome.bloom.to_bytes(BLOOM_BYTES, "big")
    _check(header, "logs bloom", header.logs_bloom, bloom)
    if outcome.requests is not None:
        _check(
            header,
            "requests hash",
            header.requests_hash,
            requests_hash(outcome.requests),
        )


def _check(header: Header, field: str, promised: object, found: object) -> None:
    """Hold what a header says against what was computed."""
    if promised != found:
        raise InvalidBlock(header, field, expected=found, actual=promised)
