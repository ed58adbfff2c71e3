"""Verification of a block against its header, without a consensus client."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import sha3
from eth_typing import Hash32

from evm import rlp
from evm.block_access_list import GAS_PER_LIST_ITEM
from evm.chain_config import UnscheduledFork
from evm.changes import Changes
from evm.errors import InvalidBlock
from evm.execution import Outcome, execute_block
from evm.header_rules import validate_header, validate_uncles
from evm.receipts import BLOOM_BYTES
from evm.requests import requests_hash
from evm.state_roots import StateRoots
from evm.tracers.record import RECORD_LIMIT_BYTES
from evm.tracers.recorder import Recorder
from evm.trie import ordered_root
from evm.world import World

if TYPE_CHECKING:
    from evm.blocks import Block
    from evm.chain_config import ChainConfig
    from evm.header_rules import Ancestry
    from evm.headers import Header
    from evm.rules.fork import Fork
    from evm.state_trie import StateTrie
    from evm.world import StateReader


@dataclass(frozen=True, slots=True)
class Parent:
    """The parent of a block, with everything that the block's execution needs."""

    header: Header
    total_difficulty: int
    ancestor_hashes: Iterable[Hash32]
    """Up to 256 hashes, newest first, beginning with the parent's."""
    ancestry: Ancestry
    """The last generations of blocks, for the uncle rules."""
    state: StateReader
    trie: StateTrie
    """The trie at the parent's state. Verification moves it to the block's state."""


@dataclass(frozen=True, slots=True)
class Verified:
    """A block that matches its header, with the results of its execution."""

    block: Block
    fork: Fork
    total_difficulty: int
    outcome: Outcome
    changes: Changes


def verify_block(
    block: Block,
    parent: Parent,
    config: ChainConfig,
    *,
    record_limit_bytes: int | None = RECORD_LIMIT_BYTES,
    lists_accesses: bool = True,
) -> Verified:
    """Execute a block on its parent and compare the results with its header.

    record_limit_bytes: size limit of one transaction's trace record. If None, no trace
        records are created.
    lists_accesses: whether the access list is made for blocks before Amsterdam as well.

    Raises: InvalidBlock, with the block's number, its hash and the mismatching field.
    """
    header = block.header
    fork = checked_fork(header, parent, config)
    world = World(parent.state)
    roots = StateRoots(
        world,
        parent.state,
        parent.trie,
        clears_empty_accounts=fork.clears_empty_accounts,
    )
    recorder = None if record_limit_bytes is None else Recorder(record_limit_bytes)
    try:
        validate_uncles(block, parent.ancestry, config)
        _check_body(block, fork)
        outcome = execute_block(
            block,
            fork,
            config,
            world,
            parent.ancestor_hashes,
            roots,
            recorder,
            lists_accesses=lists_accesses,
        )
        _check_outcome(header, outcome)
        _check(header, "state root", header.state_root, roots())
    except InvalidBlock as error:
        raise error.locate(header) from error.__cause__
    if recorder is not None:
        # Records refer to code by hash, also to code destroyed later in the block.
        roots.changes.codes.update(recorder.codes)
    return Verified(
        block,
        fork,
        parent.total_difficulty + header.difficulty,
        outcome,
        roots.changes,
    )


def checked_fork(header: Header, parent: Parent, config: ChainConfig) -> Fork:
    """Return the fork of a block whose header obeys the rules, without executing it.

    Raises: InvalidBlock; UnsupportedFork.
    """
    is_merged = config.is_merged(parent.total_difficulty)
    fork = config.fork_at(header.number, header.timestamp, is_merged)
    if header.block_access_list_hash is not None and not config.schedules_amsterdam:
        raise UnscheduledFork(header.number)
    try:
        validate_header(header, parent.header, fork, config)
    except InvalidBlock as error:
        raise error.locate(header) from error.__cause__
    return fork


def _check_body(block: Block, fork: Fork) -> None:
    header, withdrawals = block.header, block.withdrawals
    if fork.max_block_size is not None and block.size > fork.max_block_size:
        sizes = f"({block.size} bytes, limit {fork.max_block_size})"
        reason = f"block RLP-encoded size exceeds maximum {sizes}"
        raise InvalidBlock(header, "size", reason)
    root = ordered_root([transaction.raw for transaction in block.transactions])
    _check(header, "transactions root", header.transactions_root, root)
    uncles = rlp.encode([uncle.items() for uncle in block.uncles])
    uncles_hash = sha3.keccak_256(uncles).digest()
    _check(header, "uncles hash", header.uncles_hash, uncles_hash)
    if withdrawals is None and fork.has_withdrawals:
        raise InvalidBlock(header, "withdrawals", "missing withdrawals in block body")
    if withdrawals is not None:
        if not fork.has_withdrawals:
            reason = "withdrawals present in block body"
            raise InvalidBlock(header, "withdrawals", reason)
        root = ordered_root([withdrawal.encode() for withdrawal in withdrawals])
        _check(header, "withdrawals root", header.withdrawals_root, root)
    if fork.has_blobs:
        blob_gas = sum(transaction.blob_gas for transaction in block.transactions)
        _check(header, "blob gas used", header.blob_gas_used, blob_gas)


def _check_outcome(header: Header, outcome: Outcome) -> None:
    for field, promised, found in computed_fields(header, outcome):
        _check(header, field, promised, found)
    access_list, limit = outcome.access_list, header.gas_limit // GAS_PER_LIST_ITEM
    is_limited = header.block_access_list_hash is not None
    if access_list is not None and is_limited and access_list.items > limit:
        reason = (
            "invalid block access list: block access list exceeds size constraint: "
            f"items={access_list.items}, limit={limit} "
            f"(block gas limit {header.gas_limit} / {GAS_PER_LIST_ITEM})"
        )
        raise InvalidBlock(header, "block access list", reason)


def computed_fields(
    header: Header, outcome: Outcome
) -> Iterator[tuple[str, object, object]]:
    """Yield each field of a header that an execution gives, except the state root.

    The name, the header's value, and the computed value; in the order in which geth
    compares them.
    """
    yield "gas used", header.gas_used, outcome.gas_used
    bloom = outcome.bloom.to_bytes(BLOOM_BYTES, "big")
    yield "logs bloom", header.logs_bloom, bloom
    receipts = ordered_root([receipt.encode() for receipt in outcome.receipts])
    yield "receipts root", header.receipts_root, receipts
    if outcome.requests is not None:
        yield "requests hash", header.requests_hash, requests_hash(outcome.requests)
    listed, access_list = header.block_access_list_hash, outcome.access_list
    if listed is not None and access_list is not None:
        yield "block access list hash", listed, access_list.hash


_BODY_TEXT = "{} mismatch (header value {{}}, calculated {{}})"
_TEXTS = {
    "transactions root": _BODY_TEXT.format("transaction root hash"),
    "uncles hash": _BODY_TEXT.format("uncle root hash"),
    "withdrawals root": _BODY_TEXT.format("withdrawals root hash"),
    "blob gas used": "blob gas used mismatch (header {}, calculated {})",
    "gas used": "invalid gas used (remote: {} local: {})",
    "logs bloom": "invalid bloom (remote: {}  local: {})",
    "receipts root": "invalid receipt root hash (remote: {} local: {})",
    "requests hash": "invalid requests hash (remote: {} local: {})",
    "block access list hash": "access list hash mismatch, local: {1}, remote: {0}",
    "state root": "invalid merkle root (remote: {} local: {})",
}
"""geth's text for each field of a header that is compared with a computed value.

{0}: the header's value, {1}: the computed one.

Source: go-ethereum v1.17.10, core/block_validator.go
"""


def mismatch(
    header: Header, field: str, promised: object, found: object
) -> InvalidBlock:
    """Return the error for a field of a header that has another value than the computed."""
    values = (
        value.hex() if isinstance(value, bytes) else value
        for value in (promised, found)
    )
    return InvalidBlock(header, field, _TEXTS[field].format(*values))


def _check(header: Header, field: str, promised: object, found: object) -> None:
    """Compare a header's field with the computed value. Raises: InvalidBlock."""
    if promised != found:
        raise mismatch(header, field, promised, found)
