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
    if header.number != parent.number + 1:
        raise InvalidBlock(header, "number", "invalid block number")
    if header.parent_hash != parent.hash:
        raise InvalidBlock(header, "parent hash", "unknown ancestor")
    _check_timestamp(header, parent, fork)
    _check_extra_data(header, fork, config)
    _check_gas_limit(header, parent, fork)
    _check_seal_fields(header, parent, fork)
    _check_presence(header, fork)
    if fork.has_base_fee and header.base_fee_per_gas != next_base_fee(parent):
        found, fee = header.base_fee_per_gas, parent.base_fee_per_gas
        raise InvalidBlock(
            header,
            "base fee per gas",
            f"invalid baseFee: have {found}, want {next_base_fee(parent)}, "
            f"parentBaseFee {'<nil>' if fee is None else fee}, "
            f"parentGasUsed {parent.gas_used}",
        )
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


def _check_timestamp(header: Header, parent: Header, fork: Fork) -> None:
    timestamp = header.timestamp
    if timestamp > MAX_TIMESTAMP:
        # geth can't decode such a header.
        raise InvalidBlock(header, "timestamp", f"{timestamp} exceeds {MAX_TIMESTAMP}")
    if timestamp <= parent.timestamp:
        text = "timestamp older than parent"
        if fork.difficulty is None:
            text = "invalid timestamp"
        raise InvalidBlock(
            header,
            "timestamp",
            f"{text} ({timestamp} is not after {parent.timestamp})",
        )


def _check_extra_data(header: Header, fork: Fork, config: ChainConfig) -> None:
    size = len(header.extra_data)
    if size > MAX_EXTRA_DATA_BYTES:
        text = f"extra-data too long: {size} > {MAX_EXTRA_DATA_BYTES}"
        if fork.difficulty is None:
            text = f"extra-data longer than {MAX_EXTRA_DATA_BYTES} bytes ({size})"
        raise InvalidBlock(header, "extra data", text)
    if not config.is_dao_extra_data_valid(header.number, header.extra_data):
        side = "pro" if config.supports_dao_fork else "no"
        raise InvalidBlock(header, "extra data", f"bad DAO {side}-fork extra-data")


def _check_gas_limit(header: Header, parent: Header, fork: Fork) -> None:
    gas_limit, parent_limit = header.gas_limit, parent.gas_limit
    if gas_limit > MAX_GAS_LIMIT:
        text = f"invalid gasLimit: have {gas_limit}, max {MAX_GAS_LIMIT}"
        raise InvalidBlock(header, "gas limit", text)
    if header.gas_used > gas_limit:
        text = f"invalid gasUsed: have {header.gas_used}, gasLimit {gas_limit}"
        raise InvalidBlock(header, "gas used", text)
    if fork.has_base_fee and parent.base_fee_per_gas is None:
        # First block of London: the parent's gas limit becomes the gas target.
        parent_limit *= ELASTICITY
    bound = parent_limit // GAS_LIMIT_BOUND_DIVISOR
    if abs(gas_limit - parent_limit) >= bound:
        text = (
            f"invalid gas limit: have {gas_limit}, want {parent_limit} +/- {bound - 1}"
        )
        raise InvalidBlock(header, "gas limit", text)
    if gas_limit < MIN_GAS_LIMIT:
        text = f"invalid gas limit below {MIN_GAS_LIMIT}"
        raise InvalidBlock(header, "gas limit", text)


def _check_seal_fields(header: Header, parent: Header, fork: Fork) -> None:
    """Check the difficulty, and after the merge also nonce and uncles."""
    difficulty = 0
    if fork.difficulty is not None:
        difficulty = fork.difficulty(
            parent.difficulty,
            parent.timestamp,
            header.timestamp,
            header.number,
            parent.uncles_hash != EMPTY_UNCLES_HASH,
        )
    if header.difficulty != difficulty:
        text = f"invalid difficulty: have {header.difficulty}, want {difficulty}"
        if fork.difficulty is None and not parent.difficulty:
            text = "invalid terminal block"
        raise InvalidBlock(header, "difficulty", text)
    if fork.difficulty is not None:
        return
    if header.nonce != ZERO_NONCE:
        raise InvalidBlock(header, "nonce", "invalid nonce")
    if header.uncles_hash != EMPTY_UNCLES_HASH:
        raise InvalidBlock(header, "uncles hash", "invalid uncle hash")


def _check_presence(header: Header, fork: Fork) -> None:
    """Check that the header has all fields of its fork and no others."""
    for field, value, is_due, missing, unexpected in (
        (
            "base fee per gas",
            header.base_fee_per_gas,
            fork.has_base_fee,
            "header is missing baseFee",
            "invalid baseFee before fork: have {}, expected 'nil'",
        ),
        (
            "withdrawals root",
            header.withdrawals_root,
            fork.has_withdrawals,
            "missing withdrawalsHash",
            "invalid withdrawalsHash: have {}, expected nil",
        ),
        (
            "parent beacon block root",
            header.parent_beacon_root,
            fork.has_parent_beacon_root,
            "header is missing beaconRoot",
            "invalid parentBeaconRoot, have 0x{}, expected nil",
        ),
        (
            "excess blob gas",
            header.excess_blob_gas,
            fork.has_blobs,
            "header is missing excessBlobGas",
            "invalid excessBlobGas: have {}, expected nil",
        ),
        (
            "blob gas used",
            header.blob_gas_used,
            fork.has_blobs,
            "header is missing blobGasUsed",
            "invalid blobGasUsed: have {}, expected nil",
        ),
        # geth only compares the hash that was computed.
        (
            "requests hash",
            header.requests_hash,
            fork.has_requests,
            "header is missing requestsHash",
            "invalid requestsHash: have {}, expected nil",
        ),
        (
            "block access list hash",
            header.block_access_list_hash,
            fork.has_block_access_list,
            "header is missing block access list hash",
            "invalid block access list hash: have {}, expected nil",
        ),
        (
            "slot number",
            header.slot_number,
            fork.has_block_access_list,
            "header is missing slotNumber",
            "invalid slotNumber: have {}, expected nil",
        ),
    ):
        if value is None and is_due:
            raise InvalidBlock(header, field, missing)
        if value is not None and not is_due:
            shown = value.hex() if isinstance(value, bytes) else value
            raise InvalidBlock(header, field, unexpected.format(shown))


def _check_blob_gas(header: Header, parent: Header, fork: Fork) -> None:
    used, parameters = header.blob_gas_used or 0, fork.blob_parameters
    if parameters is not None and used > parameters.max_gas:
        text = f"blob gas used {used} exceeds maximum allowance {parameters.max_gas}"
        raise InvalidBlock(header, "blob gas used", text)
    if used % GAS_PER_BLOB:
        raise InvalidBlock(
            header,
            "blob gas used",
            f"blob gas used {used} not a multiple of blob gas per blob {GAS_PER_BLOB}",
        )
    excess = next_excess_blob_gas(
        parent.excess_blob_gas or 0,
        parent.blob_gas_used or 0,
        parent.base_fee_per_gas or 0,
        fork,
    )
    if header.excess_blob_gas != excess:
        text = f"invalid excessBlobGas: have {header.excess_blob_gas}, want {excess}"
        raise InvalidBlock(header, "excess blob gas", text)


def validate_uncles(block: Block, ancestry: Ancestry, config: ChainConfig) -> None:
    """Check a block's uncles.

    A block has at most two uncles. Each is the child of an ancestor of the block, but
    is itself neither an ancestor nor a sibling. It was not included before, and its
    header is valid.

    ancestry: the last seven generations, or all down to block 0.

    Raises: InvalidBlock.
    """
    if len(block.uncles) > MAX_UNCLES:
        raise InvalidBlock(block.header, "uncles", "too many uncles")
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
            fault = "duplicate uncle"
        elif uncle.hash in ancestors:
            fault = "uncle is ancestor"
        elif parent is None or uncle.parent_hash == block.header.parent_hash:
            fault = "uncle's parent is not ancestor"
        if fault is not None or parent is None:
            reason = f"{fault} (0x{uncle.hash.hex()})"
            raise InvalidBlock(block.header, f"uncle {index}", reason)
        included.add(uncle.hash)
        _validate_uncle_header(block.header, index, uncle, parent, config)


def _validate_uncle_header(
    nephew: Header, index: int, uncle: Header, parent: Header, config: ChainConfig
) -> None:
    fork = config.fork_at(uncle.number, uncle.timestamp, False)
    try:
        validate_header(uncle, parent, fork, config)
    except InvalidBlock as error:
        raise InvalidBlock(nephew, f"uncle {index}", error.summary) from error
