"""Checks of a transaction before its execution, in geth's order and with its texts.

Source: go-ethereum v1.17.10, core/state_transition.go `preCheck` and `execute`,
core/error.go, core/types/transaction_signing.go; codes: internal/ethapi/errors.go
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from eth_utils.address import to_checksum_address
from eth_utils.exceptions import ValidationError

from evm.delegations import delegate_of
from evm.intrinsic import floor_gas, intrinsic_gas
from evm.signatures import CURVE_ORDER
from evm.transactions import BLOB, CREATE_ADDRESS, LEGACY, MAX_NONCE, SET_CODE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eth_typing import Address, Hash32

    from evm.intrinsic import Executable
    from evm.rules.fork import Fork
    from evm.state import State
    from evm.transactions import Authorization, Transaction
    from evm.world import World

NONCE_TOO_LOW = -38010
NONCE_TOO_HIGH = -38011
FEE_CAP_TOO_LOW = -38012
INTRINSIC_GAS = -38013
INSUFFICIENT_FUNDS = -38014
GAS_LIMIT_REACHED = -38015
INIT_CODE_SIZE = -38025
INVALID_PARAMS = -32602
OTHER = -32603

BLOB_HASH_VERSION = 0x01

FUNDS_TEXT = "insufficient funds for gas * price + value"
TRANSFER_TEXT = "insufficient funds for transfer"
FLOOR_TEXT = "insufficient gas for floor data gas cost"
TYPE_TEXT = "transaction type not supported"
_SIGNATURE_TEXT = "invalid transaction v, r, s values"


class CallRejected(Exception):
    """Raised when a call, or a transaction, must not be executed.

    code: that of eth_simulateV1, which names the rule. text: geth's.
    """

    def __init__(self, code: int, text: str) -> None:
        self.code = code
        self.text = text
        super().__init__(text)


def check_transaction(state: State, transaction: Transaction, gas_left: int) -> None:
    """Check a transaction, and set its intrinsic gas. Its sender is recovered.

    state: that on which it is executed. gas_left: gas left in the block.

    Raises: CallRejected.
    """
    fork, kind = state.fork, transaction.type
    check_type(transaction, fork)
    check_signature(transaction, state.block.chain_id, fork)
    check_nonce(state, transaction)
    check_gas_limit(fork, transaction)
    check_sender(state.world, fork, transaction)
    if fork.has_base_fee:
        check_fees(state, transaction)
    if kind == BLOB:
        check_blobs(fork, transaction.blob_versioned_hashes)
        check_blob_fee(state, transaction)
    if kind == SET_CODE:
        check_authorizations(transaction, transaction.authorization_list)
    check_init_code(fork, transaction)
    check_gas_left(transaction, gas_left)
    check_funds(state, transaction)
    check_gas(fork, transaction, fork.max_execution_gas)


def check_type(transaction: Transaction, fork: Fork) -> None:
    """Check that a fork has transactions of this type. Raises: CallRejected."""
    if transaction.type not in fork.transaction_types:
        raise CallRejected(OTHER, TYPE_TEXT)


def check_signature(
    transaction: Transaction, chain_id: int, fork: Fork | None = None
) -> None:
    """Check a transaction's chain and signature. Recovers and caches its sender.

    fork: None for the rules of all forks from Spurious Dragon on.

    Raises: CallRejected.
    """
    if transaction.chain_id is not None:
        is_late = fork is None or fork.has_replay_protection
        if transaction.type == LEGACY and not is_late:
            raise CallRejected(OTHER, _SIGNATURE_TEXT)
        if transaction.chain_id != chain_id:
            raise CallRejected(
                OTHER,
                f"invalid chain id for signer: have {transaction.chain_id} "
                f"want {chain_id}",
            )
    is_low = fork is None or fork.has_low_signature_rule
    highest = CURVE_ORDER // 2 if is_low else CURVE_ORDER - 1
    if (
        transaction.y_parity not in (0, 1)
        or not 0 < transaction.r < CURVE_ORDER
        or not 0 < transaction.s <= highest
    ):
        raise CallRejected(OTHER, _SIGNATURE_TEXT)
    try:
        _ = transaction.sender
    except ValidationError:
        raise CallRejected(OTHER, "recovery failed") from None


def check_nonce(state: State, call: Executable) -> None:
    """Check that the nonce is the sender's. Raises: CallRejected."""
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


def check_gas_limit(fork: Fork, call: Executable) -> None:
    """Check the gas limit against a transaction's highest. Raises: CallRejected."""
    cap = fork.max_transaction_gas
    if cap is not None and call.gas > cap:
        text = f"transaction gas limit too high (cap: {cap}, tx: {call.gas})"
        raise CallRejected(OTHER, text)


def check_sender(world: World, fork: Fork, call: Executable) -> None:
    """Check that the sender is no contract (EIP-3607). Raises: CallRejected."""
    code = world.get_code(call.sender)
    if code and not (fork.has_delegations and delegate_of(code)):
        text = f"sender not an eoa: address {_sender(call)}, len(code): {len(code)}"
        raise CallRejected(OTHER, text)


def check_fees(state: State, call: Executable) -> None:
    """Check fee and tip under a fork with a base fee. Raises: CallRejected."""
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


def check_blobs(fork: Fork, hashes: Sequence[Hash32]) -> None:
    """Check the hashes of a blob transaction. Raises: CallRejected."""
    maximum = fork.max_blobs_per_transaction
    if not hashes:
        raise CallRejected(OTHER, "blob transaction missing blob hashes")
    if maximum is not None and len(hashes) > maximum:
        raise CallRejected(OTHER, "blob transaction has too many blobs")
    for index, blob_hash in enumerate(hashes):
        if blob_hash[0] != BLOB_HASH_VERSION:
            raise CallRejected(OTHER, f"blob {index} has invalid hash version")


def check_blob_fee(state: State, call: Executable) -> None:
    """Check the fee per blob gas of a blob transaction. Raises: CallRejected."""
    fee, base_fee = call.max_fee_per_blob_gas or 0, state.blob_base_fee
    if fee < base_fee:
        raise CallRejected(
            OTHER,
            "max fee per blob gas less than block blob gas fee: address "
            f"{_sender(call)} blobGasFeeCap: {fee}, blobBaseFee: {base_fee}",
        )


def check_authorizations(
    call: Executable, authorizations: Sequence[Authorization]
) -> None:
    """Check that a set-code transaction has authorizations. Raises: CallRejected."""
    if not authorizations:
        raise CallRejected(
            OTHER, f"EIP-7702 transaction with empty auth list (sender {_sender(call)})"
        )


def check_init_code(fork: Fork, call: Executable) -> None:
    """Check the length of a creation's init code (EIP-3860). Raises: CallRejected."""
    size, limit = len(call.data), fork.max_init_code_size
    if call.to == CREATE_ADDRESS and limit is not None and size > limit:
        raise CallRejected(
            INIT_CODE_SIZE,
            f"max initcode size exceeded: code size {size} limit {limit}",
        )


def check_gas_left(call: Executable, gas_left: int) -> None:
    """Check the gas limit against the gas left in the block. Raises: CallRejected."""
    if call.gas > gas_left:
        raise CallRejected(GAS_LIMIT_REACHED, "gas limit reached")


def check_funds(state: State, call: Executable) -> None:
    """Check that the sender can pay gas, blobs and value. Raises: CallRejected."""
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


def check_gas(fork: Fork, call: Executable, cap: int | None) -> None:
    """Check the gas limit against what a call costs at least; set its intrinsic gas.

    cap: the most that intrinsic gas and floor may be (EIP-8037). Raises: CallRejected.
    """
    needed = call.intrinsic_gas = intrinsic_gas(call, fork)
    if call.gas < needed:
        raise CallRejected(
            INTRINSIC_GAS, f"intrinsic gas too low: have {call.gas}, want {needed}"
        )
    floor = floor_gas(call, fork)
    if call.gas < floor:
        raise CallRejected(OTHER, f"{FLOOR_TEXT}: have {call.gas}, want {floor}")
    if cap is not None and max(needed, floor) > cap:
        text = f"{FLOOR_TEXT}: intrinsic cost {needed}, floor: {floor}"
        raise CallRejected(OTHER, text)


def _sender(call: Executable) -> str:
    return str(to_checksum_address(call.sender))
