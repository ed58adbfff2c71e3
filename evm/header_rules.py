"""Validation of headers against their parent, and of uncles.

It covers all rules that need neither execution nor a consensus client. Proof-of-work
seals are not checked.

Source: execution-specs `validate_header`, `validate_ommers`; Yellow Paper, 4.4.4
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from evm.blob_gas import next_excess_blob_gas
from evm.errors import InvalidBlock
from evm.genesis import INITIAL_BASE_FEE
from evm.headers import EMPTY_UNCLES_HASH, ZERO_NONCE
from evm.transactions import GAS_PER_BLOB

if TYPE_CHECKING:
    from eth_typing import Hash32

    from evm.blocks import Block
    from evm.chain_config import ChainConfig
    from evm.headers import Header
    from evm.rules.fork import Fork

MAX_EXTRA_DATA_BYTES = 32
MIN_GAS_LIMIT = 5000
MAX_GAS_LIMIT = 2**63 - 1
MAX_TIMESTAMP = 2**64 - 1
"""Largest timestamp in seconds that a header can contain (execution-specs: U64)."""
GAS_LIMIT_BOUND_DIVISOR = 1024
"""The gas limit changes by less than this fraction of the parent's."""
ELASTICITY = 2
"""The gas limit divided by the gas target, at which the base fee does not change."""
BASE_FEE_CHANGE_DENOMINATOR = 8

MAX_UNCLES = 2
UNCLE_DEPTH = 6
"""Maximum number of generations between an uncle and the block that includes it."""


class Generation(NamedTuple):
    """The properties of an ancestor that the uncle rules need."""

    header: Header
    uncle_hashes: Sequence[Hash32]
    """Uncles that it has included."""


Ancestry = Sequence[Generation]
"""The ancestors of a block, parent first. The rules use `UNCLE_DEPTH` + 1 of them."""


def validate_header(
    header: Header, parent: Header, fork: Fork, config: ChainConfig
) -> None:
    """Check a header against its parent and the rules of its fork.

    Raises: InvalidBlock, naming the field.
    """
    _expect(header, "number", parent.number + 1, header.number)
    _expect(header, "parent hash", parent.hash, header.parent_hash)
    if header.timestamp <= parent.timestamp:
        raise InvalidBlock(
            header,
            "timestamp",
            reason=f"{header.timestamp} is not after the parent's {parent.timestamp}",
        )
    if header.timestamp > MAX_TIMESTAMP:
        raise InvalidBlock(
            header, "timestamp", reason=f"{header.timestamp} exceeds {MAX_TIMESTAMP}"
        )
    if len(header.extra_data) > MAX_EXTRA_DATA_BYTES:
        raise InvalidBlock(
            header,
            "extra data",
            reason=f"{len(header.extra_data)} bytes exceed {MAX_EXTRA_DATA_BYTES}",
        )
    if not config.is_dao_extra_data_valid(header.number, header.extra_data):
        raise InvalidBlock(
            header, "extra data", reason="takes the other side of the DAO fork"
        )
    _check_gas_limit(header, parent, fork)
    _check_seal_fields(header, parent, fork)
    _check_presence(header, fork)
    if fork.has_base_fee:
        expected = next_base_fee(parent)
        _expect(header, "base fee per gas", expected, header.base_fee_per_gas)
    if fork.has_blobs:
        _check_blob_gas(header, parent, fork)


def next_base_fee(parent: Header) -> int:
    """Return the base fee in wei that a child must have, under London or later.

    Source: https://eips.ethereum.org/EIPS/eip-1559
    """
    base_fee = parent.base_fee_per_gas
    if base_fee is None:
        return INITIAL_BASE_FEE
    target = parent.gas_limit // ELASTICITY
    if parent.gas_used == target:
        return base_fee
    deviation = abs(parent.gas_used - target)
    change = base_fee * deviation // target // BASE_FEE_CHANGE_DENOMINATOR
    if parent.gas_used > target:
        return base_fee + max(change, 1)
    return base_fee - change


def _check_gas_limit(header: Header, parent: Header, fork: Fork) -> None:
    gas_limit, parent_limit = header.gas_limit, parent.gas_limit
    if fork.has_base_fee and parent.base_fee_per_gas is None:
        # First block of London: the parent's gas limit becomes the gas target.
        parent_limit *= ELASTICITY
    if header.gas_used > gas_limit:
        raise InvalidBlock(
            header,
            "gas used",
            reason=f"{header.gas_used} exceeds the gas limit {gas_limit}",
        )
    if abs(gas_limit - parent_limit) >= parent_limit // GAS_LIMIT_BOUND_DIVISOR:
        raise InvalidBlock(
            header,
            "gas limit",
            reason=f"{gas_limit} is too far from the parent's {parent_limit}",
        )
    if not MIN_GAS_LIMIT <= gas_limit <= MAX_GAS_LIMIT:
        raise InvalidBlock(
            header,
            "gas limit",
            reason=f"{gas_limit} is not between {MIN_GAS_LIMIT} and {MAX_GAS_LIMIT}",
        )


def _check_seal_fields(header: Header, parent: Header, fork: Fork) -> None:
    """Check the difficulty, and after the merge also nonce and uncles."""
    if fork.difficulty is None:
        _expect(header, "difficulty", 0, header.difficulty)
        _expect(header, "nonce", ZERO_NONCE, header.nonce)
        _expect(header, "uncles hash", EMPTY_UNCLES_HASH, header.uncles_hash)
        return
    difficulty = fork.difficulty(
        parent.difficulty,
        parent.timestamp,
        header.timestamp,
        header.number,
        parent.uncles_hash != EMPTY_UNCLES_HASH,
    )
    _expect(header, "difficulty", difficulty, header.difficulty)


def _check_presence(header: Header, fork: Fork) -> None:
    """Check that the header has all fields of its fork and no others."""
    for field, value, is_due in (
        ("base fee per gas", header.base_fee_per_gas, fork.has_base_fee),
        ("withdrawals root", header.withdrawals_root, fork.has_withdrawals),
        ("blob gas used", header.blob_gas_used, fork.has_blobs),
        ("excess blob gas", header.excess_blob_gas, fork.has_blobs),
        (
            "parent beacon block root",
            header.parent_beacon_root,
            fork.has_parent_beacon_root,
        ),
        ("requests hash", header.requests_hash, fork.has_requests),
        (
            "block access list hash",
            header.block_access_list_hash,
            fork.has_block_access_list,
        ),
        ("slot number", header.slot_number, fork.has_block_access_list),
    ):
        if (value is not None) != is_due:
            verb = "lacks" if is_due else "does not know"
            raise InvalidBlock(
                header, field, reason=f"{fork.name} {verb} this header field"
            )


def _check_blob_gas(header: Header, parent: Header, fork: Fork) -> None:
    used, parameters = header.blob_gas_used or 0, fork.blob_parameters
    if parameters is not None and used > parameters.max_gas:
        raise InvalidBlock(
            header, "blob gas used", reason=f"{used} exceeds {parameters.max_gas}"
        )
    if used % GAS_PER_BLOB:
        raise InvalidBlock(
            header, "blob gas used", reason=f"{used} is no multiple of {GAS_PER_BLOB}"
        )
    excess = next_excess_blob_gas(
        parent.excess_blob_gas or 0,
        parent.blob_gas_used or 0,
        parent.base_fee_per_gas or 0,
        fork,
    )
    _expect(header, "excess blob gas", excess, header.excess_blob_gas)


def validate_uncles(block: Block, ancestry: Ancestry, config: ChainConfig) -> None:
    """Check a block's uncles.

    A block has at most two uncles. Each is the child of an ancestor of the block, but
    is itself neither an ancestor nor a sibling. It was not included before, and its
    header is valid.

    ancestry: the last seven generations, or all down to block 0.

    Raises: InvalidBlock.
    """
    if len(block.uncles) > MAX_UNCLES:
        reason = f"{len(block.uncles)} exceed {MAX_UNCLES}"
        raise InvalidBlock(block.header, "uncles", reason=reason)
    generations = ancestry[: UNCLE_DEPTH + 1]
    ancestors = {
        generation.header.hash: generation.header for generation in generations
    }
    included = {
        uncle_hash
        for generation in generations
        for uncle_hash in generation.uncle_hashes
    }
    for index, uncle in enumerate(block.uncles):
        parent = ancestors.get(uncle.parent_hash)
        fault = None
        if uncle.hash in included:
            fault = "is included already"
        elif uncle.hash in ancestors:
            fault = "is an ancestor"
        elif parent is None or uncle.parent_hash == block.header.parent_hash:
            fault = "is no child of an ancestor within reach"
        if fault is not None or parent is None:
            reason = f"0x{uncle.hash.hex()} {fault}"
            raise InvalidBlock(block.header, f"uncle {index}", reason=reason)
        included.add(uncle.hash)
        _validate_uncle_header(block.header, index, uncle, parent, config)


def _validate_uncle_header(
    nephew: Header, index: int, uncle: Header, parent: Header, config: ChainConfig
) -> None:
    fork = config.fork_at(uncle.number, uncle.timestamp, False)
    try:
        validate_header(uncle, parent, fork, config)
    except InvalidBlock as error:
        raise InvalidBlock(nephew, f"uncle {index}", reason=error.summary) from error


def _expect(header: Header, field: str, expected: object, actual: object) -> None:
    if expected != actual:
        raise InvalidBlock(header, field, expected, actual)
