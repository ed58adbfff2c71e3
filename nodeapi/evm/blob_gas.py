"""The market for blobs: its parameters, its price, its memory of past demand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nodeapi.evm.forks import Fork

GAS_PER_BLOB = 131_072
"""Blob gas of one blob."""
MINIMUM_BLOB_BASE_FEE = 1
"""Wei per blob gas."""
RESERVE_EXECUTION_GAS_PER_BLOB = 8192
"""Execution gas whose price a blob's should not undercut, from Osaka on."""


@dataclass(frozen=True, slots=True)
class BlobParameters:
    """What a fork, or a blob-parameter-only fork, allows and aims at."""

    target: int
    """Blobs per block at which the price holds still."""
    max: int
    """Blobs per block."""
    base_fee_update_fraction: int
    """Excess blob gas that multiplies the price by e."""

    @property
    def target_gas(self) -> int:
        """Blob gas per block at which the price holds still."""
        return self.target * GAS_PER_BLOB

    @property
    def max_gas(self) -> int:
        """Blob gas that a block may use."""
        return self.max * GAS_PER_BLOB


def blob_base_fee(excess_blob_gas: int, update_fraction: int) -> int:
    """Return wei per blob gas: e ** (excess / fraction) in integers.

    Source: https://eips.ethereum.org/EIPS/eip-4844 `fake_exponential`
    """
    total, n = 0, 1
    term = MINIMUM_BLOB_BASE_FEE * update_fraction
    while term:
        total += term
        term = term * excess_blob_gas // (update_fraction * n)
        n += 1
    return total // update_fraction


def next_excess_blob_gas(
    parent_excess_blob_gas: int,
    parent_blob_gas_used: int,
    parent_base_fee: int,
    fork: Fork,
) -> int:
    """Return the excess blob gas that a child block's header must state.

    fork: the child's. A parent without blob fields counts as 0 and 0.
    parent_base_fee: wei per gas, read only where the reserve price applies.
    Source: https://eips.ethereum.org/EIPS/eip-4844 · eip-7918 · eip-7892
    """
    parameters = fork.blob_parameters
    if parameters is None:
        raise ValueError(f"{fork.name} has no blobs")
    demand = parent_excess_blob_gas + parent_blob_gas_used
    if demand < parameters.target_gas:
        return 0
    if fork.has_blob_reserve_price:
        fee = blob_base_fee(parent_excess_blob_gas, parameters.base_fee_update_fraction)
        if RESERVE_EXECUTION_GAS_PER_BLOB * parent_base_fee > GAS_PER_BLOB * fee:
            above_target = parameters.max - parameters.target
            return (
                parent_excess_blob_gas
                + parent_blob_gas_used * above_target // parameters.max
            )
    return demand - parameters.target_gas
