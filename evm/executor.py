"""Execution of a transaction: validation, payment of gas, message call, settlement."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eth_utils.exceptions import ValidationError

from evm.addresses import contract_address
from evm.context import TransactionContext
from evm.delegations import apply_authorizations, delegate_of, resolved_code
from evm.errors import InvalidTransaction
from evm.frame_errors import AddressCollision, FrameError
from evm.intrinsic import floor_gas, intrinsic_gas
from evm.message import Message
from evm.signatures import CURVE_ORDER
from evm.transactions import BLOB, CREATE_ADDRESS, LEGACY, MAX_NONCE, SET_CODE

if TYPE_CHECKING:
    from eth_typing import Address

    from evm.frame import Frame
    from evm.intrinsic import Executable
    from evm.state import State
    from evm.transactions import Transaction

BLOB_HASH_VERSION = 0x01


def apply_transaction(
    state: State, transaction: Transaction, index: int
) -> tuple[Frame, int]:
    """Execute a transaction. Return its outermost frame and the gas used.

    index: the transaction's index in its block.

    Raises: InvalidTransaction if it is not allowed in this state.
    """
    try:
        state.begin(transaction)
        validate_transaction(state, transaction)
    except ValidationError as error:
        raise InvalidTransaction(index, str(error)) from error
    return Executor(state, transaction, gas_price(state, transaction)).run()


# Validity


def validate_transaction(state: State, transaction: Transaction) -> None:
    """Check all rules that do not depend on the rest of the block.

    Raises: eth_utils.ValidationError.
    """
    _validate_form(state, transaction)
    _validate_gas(state, transaction)
    _validate_fees(state, transaction)
    if transaction.type == BLOB:
        _validate_blobs(state, transaction)
    _validate_sender(state, transaction)


def _validate_form(state: State, transaction: Transaction) -> None:
    fork, kind, chain_id = state.fork, transaction.type, state.block.chain_id
    if kind not in fork.transaction_types:
        raise ValidationError(f"transaction type {kind} is not known in {fork.name}")
    if transaction.chain_id is not None:
        if kind == LEGACY and not fork.has_replay_protection:
            raise ValidationError(f"{fork.name} has no chain id in transactions")
        if transaction.chain_id != chain_id:
            raise ValidationError(f"chain id is {transaction.chain_id}, not {chain_id}")
    if fork.has_low_signature_rule and transaction.s > CURVE_ORDER // 2:
        raise ValidationError("signature has a high s")
    if kind == SET_CODE and not transaction.authorization_list:
        raise ValidationError("no authorizations in a set-code transaction")
    if (
        transaction.to == CREATE_ADDRESS
        and fork.max_init_code_size is not None
        and len(transaction.data) > fork.max_init_code_size
    ):
        raise ValidationError(f"init code is {len(transaction.data)} bytes long")


def _validate_gas(state: State, transaction: Transaction) -> None:
    fork, gas = state.fork, transaction.gas
    if fork.max_transaction_gas is not None and gas > fork.max_transaction_gas:
        raise ValidationError(
            f"gas limit {gas} is above the cap {fork.max_transaction_gas}"
        )
    transaction.intrinsic_gas = intrinsic_gas(transaction, fork)
    if gas < transaction.intrinsic_gas:
        raise ValidationError(
            f"gas limit {gas} is below the intrinsic gas {transaction.intrinsic_gas}"
        )
    floor = floor_gas(transaction, fork)
    if gas < floor:
        raise ValidationError(f"gas limit {gas} is below the data's floor {floor}")


def _validate_fees(state: State, transaction: Transaction) -> None:
    fee, tip = transaction.max_fee_per_gas, transaction.max_priority_fee_per_gas
    if tip > fee:
        raise ValidationError(f"priority fee {tip} is above the fee {fee}")
    if fee < base_fee(state):
        raise ValidationError(f"fee {fee} is below the base fee {base_fee(state)}")


def _validate_blobs(state: State, transaction: Transaction) -> None:
    hashes = transaction.blob_versioned_hashes
    maximum, price = state.fork.max_blobs_per_transaction, state.blob_base_fee
    if not hashes:
        raise ValidationError("no blobs in a blob transaction")
    if maximum is not None and len(hashes) > maximum:
        raise ValidationError(f"{len(hashes)} blobs, at most {maximum} are allowed")
    if any(blob_hash[0] != BLOB_HASH_VERSION for blob_hash in hashes):
        raise ValidationError("a blob's hash has an unknown version")
    if transaction.max_fee_per_blob_gas < price:
        raise ValidationError(
            f"blob fee {transaction.max_fee_per_blob_gas} is below the blob base "
            f"fee {price}"
        )


def _validate_sender(state: State, transaction: Transaction) -> None:
    sender = transaction.sender
    nonce = state.get_nonce(sender)
    if transaction.nonce != nonce:
        raise ValidationError(f"nonce is {transaction.nonce}, not {nonce}")
    if nonce >= MAX_NONCE:
        raise ValidationError("the sender's nonces are used up")
    code = state.get_code(sender)
    if code and not (state.fork.has_delegations and delegate_of(code)):
        raise ValidationError("the sender is a contract")
    cost = (
        transaction.gas * transaction.max_fee_per_gas
        + transaction.blob_gas * transaction.max_fee_per_blob_gas
        + transaction.value
    )
    balance = state.get_balance(sender)
    if balance < cost:
        raise ValidationError(f"the sender has {balance} wei, and needs up to {cost}")


# Price


def base_fee(state: State) -> int:
    """Return the base fee in wei per gas, which is burned. 0 before London."""
    return state.block.base_fee if state.fork.has_base_fee else 0


def gas_price(state: State, transaction: Transaction) -> int:
    """Return the wei per gas that the sender pays: base fee and tip."""
    return min(
        transaction.max_fee_per_gas,
        base_fee(state) + transaction.max_priority_fee_per_gas,
    )


# Execution


class Executor:
    """Executes one transaction that was checked, by the rules of the state's fork."""

    def __init__(self, state: State, transaction: Executable, gas_price: int) -> None:
        """gas_price: wei per gas that the sender pays."""
        self.state = state
        self.transaction = transaction
        self.gas_price = gas_price
        self.nonce = transaction.nonce
        """Determines the address of a creation."""

    def run(self) -> tuple[Frame, int]:
        """Execute the transaction. Return its outermost frame and the gas used."""
        state, transaction = self.state, self.transaction
        self.charge()
        refund = apply_authorizations(state, transaction.authorization_list)
        message = self._message()
        if state.fork.has_access_lists:
            self._warm_up(message)
        context = TransactionContext(
            transaction.sender, self.gas_price, transaction.blob_versioned_hashes
        )
        # It is kept if the frame fails.
        context.effects.refund = refund
        frame = state.frame(message, context)
        if message.is_create:
            error = self.creation_error(message.storage_address)
            if error is not None:
                frame.fail(error)
        state.run_outermost(frame, transaction)
        gas_used = self._settle(frame)
        state.end(transaction, gas_used)
        return frame, gas_used

    def charge(self) -> None:
        """Charge the sender for the gas limit and the blobs, and use up the nonce."""
        world, transaction = self.state.world, self.transaction
        cost, sender = transaction.gas * self.gas_price, transaction.sender
        if transaction.blob_gas:
            cost += transaction.blob_gas * self.state.blob_base_fee
        world.set_balance(sender, world.get_balance(sender) - cost)
        world.increment_nonce(sender)

    def _message(self) -> Message:
        """Return the outermost message."""
        transaction, sender = self.transaction, self.transaction.sender
        gas = transaction.gas - transaction.intrinsic_gas
        to, value, data = transaction.to, transaction.value, transaction.data
        if to == CREATE_ADDRESS:
            created = contract_address(sender, self.nonce)
            return Message(gas, to, sender, value, b"", data, create_address=created)
        code, delegate = resolved_code(self.state, to)
        if delegate is not None:
            self.state.world.mark_address_warm(delegate)
        return Message(gas, to, sender, value, data, code, delegate=delegate)

    def _warm_up(self, message: Message) -> None:
        """Mark the initially warm addresses and slots (EIP-2929, EIP-2930)."""
        state, world = self.state, self.state.world
        world.mark_address_warm(self.transaction.sender)
        world.mark_address_warm(message.storage_address)
        if state.fork.warms_coinbase:
            world.mark_address_warm(state.block.coinbase)
        for address, slots in self.transaction.access_list:
            world.mark_address_warm(address)
            for slot in slots:
                world.mark_storage_warm(address, slot)

    def creation_error(self, address: Address) -> FrameError | None:
        """Return the error of a creation that fails before its execution, or None.

        address: that of the new contract.
        """
        return AddressCollision() if self.state.world.is_occupied(address) else None

    # The end

    def _settle(self, frame: Frame) -> int:
        """Settle the gas, and delete destroyed and empty touched accounts.

        Return the gas that the sender pays for.
        """
        state, world, effects = self.state, self.state.world, frame.transaction.effects
        sender, gas_used = self.transaction.sender, self.settled_gas(frame)
        returned = (self.transaction.gas - gas_used) * self.gas_price
        if returned:
            world.set_balance(sender, world.get_balance(sender) + returned)
        touched = set(effects.touched)
        if self.reward(gas_used):
            touched.add(state.block.coinbase)
        for address in effects.destroyed:
            world.delete_account(address)
        if state.fork.clears_empty_accounts:
            # Source: https://eips.ethereum.org/EIPS/eip-161
            for address in touched:
                if world.account_exists(address) and world.account_is_empty(address):
                    world.delete_account(address)
        return gas_used

    def reward(self, gas_used: int) -> bool:
        """Pay the tip to the coinbase. Return whether that touches the account."""
        world, coinbase = self.state.world, self.state.block.coinbase
        tip = gas_used * (self.gas_price - base_fee(self.state))
        # Even a tip of 0 touches the coinbase, and creates it before EIP-161.
        world.set_balance(coinbase, world.get_balance(coinbase) + tip)
        return True

    def settled_gas(self, frame: Frame) -> int:
        """Return the gas that the sender pays for, after refunds and floor."""
        fork = self.state.fork
        used = self.transaction.gas - frame.gas_remaining
        used -= min(frame.transaction.effects.refund, used // fork.refund_quotient)
        return max(used, floor_gas(self.transaction, fork))
