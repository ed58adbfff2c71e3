"""Checks of a call before its execution, in geth's order and with its texts.

A call is checked like a transaction, but the sender may be a contract, the gas limit may
exceed a transaction's, and the nonce and the base fee are checked on demand only.

Source: go-ethereum v1.17.10, core/state_transition.go, core/error.go; codes:
internal/ethapi/errors.go
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from eth_utils.address import to_checksum_address

from evm.executor import BLOB_HASH_VERSION
from evm.intrinsic import floor_gas, intrinsic_gas
from evm.transactions import CREATE_ADDRESS, MAX_NONCE

if TYPE_CHECKING:
    from eth_typing import Address

    from evm.rules.fork import Fork
    from evm.simulation.arguments import CallMessage
    from evm.state import State

NONCE_TOO_LOW = -38010
NONCE_TOO_HIGH = -38011
FEE_CAP_TOO_LOW = -38012
INTRINSIC_GAS = -38013
INSUFFICIENT_FUNDS = -38014
GAS_LIMIT_REACHED = -38015
INIT_CODE_SIZE = -38025
INVALID_PARAMS = -32602
OTHER = -32603

FUNDS_TEXT = "insufficient funds for gas * price + value"
TRANSFER_TEXT = "insufficient funds for transfer"


FLOOR_TEXT = "insufficient gas for floor data gas cost"


class CallRejected(Exception):
    """Raised when a call must not be executed.

    code: that of eth_simulateV1, which names the rule. text: geth's.
    """

    def __init__(self, code: int, text: str) -> None:
        self.code = code
        self.text = text
        super().__init__(text)


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
        _check_nonce(state, call)
    is_free = call.is_free and not requires_fee
    if fork.has_base_fee and not is_free:
        _check_fees(state, call)
    if call.accesses is not None and not fork.has_access_lists:
        raise _unsupported("access list", call)
    if call.max_fee_per_blob_gas is not None and not fork.has_blobs:
        raise _unsupported("blob", call)
    if call.blob_hashes is not None:
        _check_blobs(fork, call)
        _check_blob_fee(state, call, requires_fee)
    if call.authorizations is not None:
        if not fork.has_delegations:
            raise _unsupported("setcode", call)
        _check_authorizations(call)
    _check_init_code(fork, call)
    if gas_left is not None and call.gas > gas_left:
        raise CallRejected(GAS_LIMIT_REACHED, "gas limit reached")
    _check_funds(state, call)
    _check_gas(fork, call, fork.max_execution_gas if limits_execution_gas else None)


def _check_nonce(state: State, call: CallMessage) -> None:
    nonce = state.get_nonce(call.sender)
    if call.nonce != nonce:
        word, code = (
            ("high", NONCE_TOO_HIGH) if call.nonce > nonce else ("low", NONCE_TOO_LOW)
        )
        raise CallRejected(
            code,
            f"nonce too {word}: address {_sender(call)}, tx: {call.nonce} "
            f"state: {nonce}",
        )
    check_nonce_limit(call.sender, nonce)


def check_nonce_limit(sender: Address, nonce: int) -> None:
    """Check that a sender's nonce can rise (EIP-2681). Raises: CallRejected."""
    if nonce >= MAX_NONCE:
        account = to_checksum_address(sender)
        text = f"nonce has max value: address {account}, nonce: {nonce}"
        raise CallRejected(OTHER, text)


def _check_fees(state: State, call: CallMessage) -> None:
    fee, tip = call.max_fee_per_gas, call.max_priority_fee_per_gas
    base_fee = state.block.base_fee
    if tip > fee:
        raise CallRejected(
            INVALID_PARAMS,
            "max priority fee per gas higher than max fee per gas: address "
            f"{_sender(call)}, maxPriorityFeePerGas: {tip}, maxFeePerGas: {fee}",
        )
    if fee < base_fee:
        raise CallRejected(
            FEE_CAP_TOO_LOW,
            f"max fee per gas less than block base fee: address {_sender(call)}, "
            f"maxFeePerGas: {fee}, baseFee: {base_fee}",
        )


def _unsupported(kind: str, call: CallMessage) -> CallRejected:
    text = f"transaction type not supported: {kind} tx (sender {_sender(call)})"
    return CallRejected(OTHER, text)


def _check_blobs(fork: Fork, call: CallMessage) -> None:
    hashes, maximum = call.blob_hashes or (), fork.max_blobs_per_transaction
    if not hashes:
        raise CallRejected(OTHER, "blob transaction missing blob hashes")
    if maximum is not None and len(hashes) > maximum:
        raise CallRejected(OTHER, "blob transaction has too many blobs")
    for index, blob_hash in enumerate(hashes):
        if blob_hash[0] != BLOB_HASH_VERSION:
            raise CallRejected(OTHER, f"blob {index} has invalid hash version")


def _check_blob_fee(state: State, call: CallMessage, requires_fee: bool) -> None:
    fee, base_fee = call.max_fee_per_blob_gas or 0, state.blob_base_fee
    if (fee or requires_fee) and fee < base_fee:
        raise CallRejected(
            OTHER,
            "max fee per blob gas less than block blob gas fee: address "
            f"{_sender(call)} blobGasFeeCap: {fee}, blobBaseFee: {base_fee}",
        )


def _check_authorizations(call: CallMessage) -> None:
    if not call.authorizations:
        raise CallRejected(
            OTHER, f"EIP-7702 transaction with empty auth list (sender {_sender(call)})"
        )


def _check_funds(state: State, call: CallMessage) -> None:
    cost = call.gas * call.max_fee_per_gas + call.value
    if state.fork.has_blobs:
        cost += call.blob_gas * (call.max_fee_per_blob_gas or 0)
    if cost >= 2**256:
        raise CallRejected(
            INSUFFICIENT_FUNDS,
            f"{FUNDS_TEXT}: address {_sender(call)} required balance exceeds 256 bits",
        )
    if cost and (balance := state.get_balance(call.sender)) < cost:
        raise CallRejected(
            INSUFFICIENT_FUNDS,
            f"{FUNDS_TEXT}: address {_sender(call)} have {balance} want {cost}",
        )


def _check_gas(fork: Fork, call: CallMessage, cap: int | None) -> None:
    """Check the gas limit. cap: the most that intrinsic gas and floor may be."""
    needed = call.intrinsic_gas = intrinsic_gas(call, fork)
    if call.gas < needed:
        raise CallRejected(
            INTRINSIC_GAS, f"intrinsic gas too low: have {call.gas}, want {needed}"
        )
    floor = floor_gas(call, fork)
    if call.gas < floor:
        raise CallRejected(
            OTHER,
            f"{FLOOR_TEXT}: have {call.gas}, want {floor}",
        )
    if cap is not None and max(needed, floor) > cap:
        text = f"{FLOOR_TEXT}: intrinsic cost {needed}, floor: {floor}"
        raise CallRejected(OTHER, text)


def _check_init_code(fork: Fork, call: CallMessage) -> None:
    size, limit = len(call.data), fork.max_init_code_size
    if call.to == CREATE_ADDRESS and limit is not None and size > limit:
        raise CallRejected(
            INIT_CODE_SIZE,
            f"max initcode size exceeded: code size {size} limit {limit}",
        )


def _sender(call: CallMessage) -> str:
    return str(to_checksum_address(call.sender))
