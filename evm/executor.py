"""Execution of a transaction: payment of gas, message call, settlement."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from evm.addresses import contract_address
from evm.checks import NONCE_TOO_LOW, CallRejected, check_transaction
from evm.context import TransactionContext
from evm.delegations import apply_authorizations, delegate_of
from evm.errors import InvalidTransaction
from evm.frame_errors import AddressCollision, FrameError, OutOfGas
from evm.gas import GasMeter
from evm.intrinsic import floor_gas
from evm.message import Message
from evm.transactions import CREATE_ADDRESS

if TYPE_CHECKING:
    from eth_typing import Address

    from evm.frame import Frame
    from evm.intrinsic import Executable
    from evm.state import State
    from evm.transactions import Transaction


class Executed(NamedTuple):
    """The outcome of a transaction: its outermost frame, and `evm.gas.GasUsed`."""

    frame: Frame
    gas_used: int
    execution_gas: int
    state_gas: int


def apply_transaction(
    state: State, transaction: Transaction, index: int, gas_left: int
) -> Executed:
    """Execute a transaction.

    index: the transaction's index in its block. gas_left: gas left in the block.

    Raises: InvalidTransaction if it is not allowed in this state.
    """
    try:
        check_transaction(state, transaction, gas_left)
    except CallRejected as error:
        outdated = error.code == NONCE_TOO_LOW
        raise InvalidTransaction(
            index, transaction.hash, error.text, is_outdated=outdated
        ) from error
    state.begin(transaction)
    return Executor(state, transaction, gas_price(state, transaction)).run()


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
        self.meter = GasMeter()
        """The transaction's own gas, which its outermost frame is given."""
        self.meter.gas_remaining = transaction.gas - transaction.intrinsic_gas
        self._receiver = transaction.to
        """The called account, or the new contract."""
        self._growth = 0
        """State gas that was charged for the receiver's account."""

    def run(self) -> Executed:
        """Execute the transaction."""
        state, transaction, meter = self.state, self.transaction, self.meter
        self.charge()
        if transaction.to == CREATE_ADDRESS:
            self._receiver = contract_address(transaction.sender, self.nonce)
        self.fill_reservoir()
        if state.fork.has_access_lists:
            self._warm_up()
        context = TransactionContext(
            transaction.sender, self.gas_price, transaction.blob_versioned_hashes
        )
        snapshot = state.world.record()
        error: FrameError | None = None
        try:
            # The refund is kept if the frame fails.
            context.effects.refund = apply_authorizations(state, transaction, meter)
            message = self._message()
        except OutOfGas as out_of_gas:
            error = out_of_gas
            state.world.discard(snapshot)
            meter.return_all_state()
            message = self._new_message(b"")
        frame = state.frame(message, context)
        frame.reservoir = meter.reservoir
        if error is None and message.is_create:
            error = self.creation_error(self._receiver)
        if error is not None:
            frame.fail(error)
        state.run_outermost(frame, transaction)
        self._take_back(frame)
        executed = self._settle(frame)
        state.end(transaction, executed.gas_used)
        return executed

    def charge(self) -> None:
        """Charge the sender for the gas limit and the blobs, and use up the nonce."""
        world, transaction = self.state.world, self.transaction
        cost, sender = transaction.gas * self.gas_price, transaction.sender
        if transaction.blob_gas:
            cost += transaction.blob_gas * self.state.blob_base_fee
        world.set_balance(sender, world.get_balance(sender) - cost)
        world.increment_nonce(sender)

    def fill_reservoir(self) -> None:
        """Keep the gas above the limit of execution gas for state gas (EIP-8037)."""
        cap, meter = self.state.fork.max_execution_gas, self.meter
        if cap is not None:
            left = min(cap - self.transaction.intrinsic_gas, meter.gas_remaining)
            meter.reservoir = meter.gas_remaining - left
            meter.gas_remaining = left

    def _message(self) -> Message:
        """Return the outermost message, and charge for what it finds in the state.

        Raises: OutOfGas, from Amsterdam on (EIP-2780).
        """
        transaction, receiver, delegate = self.transaction, self._receiver, None
        fork, world = self.state.fork, self.state.world
        prices, is_create = fork.prices, transaction.to == CREATE_ADDRESS
        grows = is_create or bool(transaction.value)
        if prices.state and grows and world.account_is_empty(receiver):
            self.meter.charge_state(prices.state.account)
            self._growth = prices.state.account
        if is_create:
            return self._new_message(transaction.data)
        code = world.get_code(receiver)
        if fork.has_delegations:
            delegate = delegate_of(code)
        if delegate is not None:
            if prices.state is not None:
                is_warm = world.is_address_warm(delegate)
                self.meter.charge(prices.warm if is_warm else prices.cold_account)
            world.mark_address_warm(delegate)
            code = world.get_code(delegate)
        return self._new_message(code, delegate)

    def _new_message(self, code: bytes, delegate: Address | None = None) -> Message:
        """Return the outermost message, which is given all gas that is left."""
        transaction, is_create = self.transaction, self.transaction.to == CREATE_ADDRESS
        return Message(
            self.meter.gas_remaining,
            transaction.to,
            transaction.sender,
            transaction.value,
            b"" if is_create else transaction.data,
            code,
            create_address=self._receiver if is_create else None,
            delegate=delegate,
        )

    def _warm_up(self) -> None:
        """Mark the initially warm addresses and slots (EIP-2929, EIP-2930)."""
        state, world = self.state, self.state.world
        world.mark_address_warm(self.transaction.sender)
        world.mark_address_warm(self._receiver)
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
        by_storage = self.state.fork.storage_occupies
        is_occupied = self.state.world.is_occupied(address, by_storage=by_storage)
        return AddressCollision() if is_occupied else None

    # The end

    def _take_back(self, frame: Frame) -> None:
        """Take back the gas that the outermost frame has left."""
        meter, error = self.meter, frame.error
        meter.gas_remaining = frame.gas_remaining
        meter.absorb_state(frame)
        if error is not None:
            meter.return_state(self._growth)
            if error.burns_gas:
                # Also what had been spilled for the new account.
                meter.gas_remaining = 0

    def _settle(self, frame: Frame) -> Executed:
        """Settle the gas, and delete destroyed and empty touched accounts."""
        state, world, effects = self.state, self.state.world, frame.transaction.effects
        sender, executed = self.transaction.sender, self.settled(frame)
        gas_used = executed.gas_used
        returned = (self.transaction.gas - gas_used) * self.gas_price
        if returned:
            world.set_balance(sender, world.get_balance(sender) + returned)
        self.reward(gas_used)
        touched = {*effects.touched, state.block.coinbase}
        for address in effects.destroyed:
            kept = 0
            if state.fork.keeps_destroyed_balance:
                kept = world.get_balance(address)
            world.delete_account(address)
            if kept:
                world.set_balance(address, kept)
        if state.fork.clears_empty_accounts:
            # Source: https://eips.ethereum.org/EIPS/eip-161
            for address in touched:
                if world.account_exists(address) and world.account_is_empty(address):
                    world.delete_account(address)
        return executed

    def reward(self, gas_used: int) -> None:
        """Pay the tip to the coinbase."""
        world, coinbase = self.state.world, self.state.block.coinbase
        tip = gas_used * (self.gas_price - base_fee(self.state))
        # Even a tip of 0 touches the coinbase, and creates it before EIP-161.
        world.set_balance(coinbase, world.get_balance(coinbase) + tip)

    def settled(self, frame: Frame) -> Executed:
        """Return the gas that the sender pays for, after refunds and floor."""
        fork, meter = self.state.fork, self.meter
        floor = floor_gas(self.transaction, fork)
        used = self.transaction.gas - meter.gas_remaining - meter.reservoir
        refund = min(frame.transaction.effects.refund, used // fork.refund_quotient)
        gas_used = max(used - refund, floor)
        if fork.prices.state is None:
            return Executed(frame, gas_used, gas_used, 0)
        execution_gas = max(used - meter.state_gas_used, floor)
        return Executed(frame, gas_used, execution_gas, meter.state_gas_used)
