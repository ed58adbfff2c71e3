"""Checks of a call before its execution.

A call is checked like a transaction, but the sender may be a contract, the gas limit may
exceed a transaction's, and the nonce and the base fee are checked on demand only.

Source: go-ethereum v1.17.10, core/state_transition.go `preCheck`
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from eth_utils.address import to_checksum_address

from evm.checks import (
    OTHER,
    TYPE_TEXT,
    CallRejected,
    check_authorizations,
    check_blob_fee,
    check_blobs,
    check_fees,
    check_funds,
    check_gas,
    check_gas_left,
    check_init_code,
    check_nonce,
)

if TYPE_CHECKING:
    from evm.simulation.arguments import CallMessage
    from evm.state import State


def check_call(
    state: State,
    call: CallMessage,
    *,
    checks_nonce: bool = False,
    requires_fee: bool = False,
    gas_left: int | None = None,
    limits_execution_gas: bool = False,
) -> None:
    """Check a call, and set its intrinsic gas.

    state: that on which it is executed.
    checks_nonce: whether the nonce has to be the sender's.
    requires_fee: whether a call without fees has to pay the base fee.
    gas_left: gas left in the block, if that is limited.
    limits_execution_gas: whether the intrinsic gas and the floor are limited (EIP-8037).

    Raises: CallRejected.
    """
    fork = state.fork
    if checks_nonce:
        check_nonce(state, call)
    is_free = call.is_free and not requires_fee
    if fork.has_base_fee and not is_free:
        check_fees(state, call)
    if call.accesses is not None and not fork.has_access_lists:
        raise _unsupported("access list", call)
    if call.max_fee_per_blob_gas is not None and not fork.has_blobs:
        raise _unsupported("blob", call)
    if call.blob_hashes is not None:
        check_blobs(fork, call.blob_hashes)
        if call.max_fee_per_blob_gas or requires_fee:
            check_blob_fee(state, call)
    if call.authorizations is not None:
        if not fork.has_delegations:
            raise _unsupported("setcode", call)
        check_authorizations(call, call.authorizations)
    check_init_code(fork, call)
    if gas_left is not None:
        check_gas_left(call, gas_left)
    check_funds(state, call)
    check_gas(fork, call, fork.max_execution_gas if limits_execution_gas else None)


def _unsupported(kind: str, call: CallMessage) -> CallRejected:
    sender = to_checksum_address(call.sender)
    return CallRejected(OTHER, f"{TYPE_TEXT}: {kind} tx (sender {sender})")
