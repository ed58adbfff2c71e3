"""Fees of a call, where the caller has given some and left out others.

Source: go-ethereum v1.17.10, internal/ethapi/transaction_args.go `setFeeDefaults`
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evm.simulation.arguments import FEES_BEFORE_LONDON, InvalidCall

if TYPE_CHECKING:
    from evm.simulation.arguments import CallArguments
    from evm.simulation.block import CallBlock

BASE_FEE_FACTOR = 2
"""Fees that are filled in allow the base fee to rise by this factor."""


def has_fees(arguments: CallArguments) -> bool:
    """Return whether a fee is given."""
    fees = (
        arguments.gas_price,
        arguments.max_fee_per_gas,
        arguments.max_priority_fee_per_gas,
        arguments.max_fee_per_blob_gas,
    )
    return any(fee is not None for fee in fees)


def needs_tip(arguments: CallArguments) -> bool:
    """Return whether `fill_fees` uses its tip."""
    return arguments.gas_price is None and arguments.max_priority_fee_per_gas is None


def fill_fees(arguments: CallArguments, block: CallBlock, tip: int) -> None:
    """Set the fees that the caller has left out. tip: wei per gas, see `needs_tip`.

    Raises: InvalidCall.
    """
    if arguments.max_fee_per_blob_gas == 0:
        raise InvalidCall("maxFeePerBlobGas, if specified, must be non-zero")
    if (
        arguments.blob_versioned_hashes is not None
        and arguments.max_fee_per_blob_gas is None
        and block.blob_base_fee is not None
    ):
        arguments.max_fee_per_blob_gas = BASE_FEE_FACTOR * block.blob_base_fee
    fee, own_tip = arguments.max_fee_per_gas, arguments.max_priority_fee_per_gas
    if arguments.gas_price is not None:
        if fee is not None or own_tip is not None:
            raise InvalidCall(
                "both gasPrice and (maxFeePerGas or maxPriorityFeePerGas) specified"
            )
        if arguments.authorization_list is not None:
            raise InvalidCall("both gasPrice and authorizationList specified")
        if not arguments.gas_price and block.fork.has_base_fee:
            raise InvalidCall("gasPrice must be non-zero after london fork")
        return
    if fee == 0 and own_tip is not None:
        raise InvalidCall("maxFeePerGas must be non-zero")
    is_complete = fee is not None and own_tip is not None
    if not block.fork.has_base_fee and not is_complete:
        if fee is not None or own_tip is not None:
            raise InvalidCall(FEES_BEFORE_LONDON)
        arguments.gas_price = tip
        return
    if own_tip is None:
        own_tip = arguments.max_priority_fee_per_gas = tip
    if fee is None:
        fee = own_tip + BASE_FEE_FACTOR * (block.base_fee or 0)
        arguments.max_fee_per_gas = fee
    if fee < own_tip:
        raise InvalidCall(
            f"maxFeePerGas ({hex(fee)}) < maxPriorityFeePerGas ({hex(own_tip)})"
        )
