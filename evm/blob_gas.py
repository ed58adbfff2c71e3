"""The base fee of blob gas, and its adjustment by demand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evm.transactions import GAS_PER_BLOB

if TYPE_CHECKING:
    from evm.rules.fork import Fork

MINIMUM_BLOB_BASE_FEE = 1
"""Wei per blob gas."""
RESERVE_EXECUTION_GAS_PER_BLOB = 8192
"""A blob should not cost less than this execution gas, from Osaka on (EIP-7918)."""


def blob_base_fee(excess_blob_gas: int, update_fraction: int) -> int:
    """Return the wei per blob gas: e ** (excess / fraction), in integer arithmetic.

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
    """Return the excess blob gas that a child block's header has to contain.

    fork: the child's. A parent before Cancun counts as 0 for both values.
    parent_base_fee: wei per gas, used only for the reserve price (EIP-7918).

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
