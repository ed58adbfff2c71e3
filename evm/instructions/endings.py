"""Instructions that end a frame with an output, and SELFDESTRUCT."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evm.addresses import address_of
from evm.frame_errors import InvalidOpcode, OutOfGas, Revert, StackUnderflow
from evm.memory import range_cost
from evm.opcodes import OPCODES

if TYPE_CHECKING:
    from evm.frame import Frame


def output_cost(frame: Frame) -> int:
    """Return the gas of RETURN and REVERT."""
    start, size = frame.stack[-1:-3:-1]
    return range_cost(frame.memory, start, size)


def return_(frame: Frame) -> None:
    """RETURN: end the frame with an output."""
    # STACK
    values = frame.stack
    if len(values) < 2:
        raise StackUnderflow(len(values), 2)
    # GAS
    start, size = values[-1:-3:-1]
    if size:
        frame.expand(start, size)
    # OPERATION
    del values[-2:]
    frame.output = bytes(frame.memory[start : start + size])


def revert(frame: Frame) -> None:
    """REVERT: end the frame with an output, and undo its changes (EIP-140)."""
    return_(frame)
    frame.fail(Revert())


def invalid(frame: Frame) -> None:
    """Fail, because the fork has no such instruction, or because it is INVALID (EIP-141)."""
    raise InvalidOpcode(OPCODES[frame.code[frame.pc]].name)


def selfdestruct_cost(frame: Frame) -> int:
    """Return the gas of SELFDESTRUCT beyond its constant price."""
    return _selfdestruct_price(frame)[0]


def selfdestruct_state_cost(frame: Frame) -> int:
    """Return the state gas of SELFDESTRUCT."""
    prices = frame.prices.state
    return prices.account if prices and _selfdestruct_price(frame)[1] else 0


def _selfdestruct_price(frame: Frame) -> tuple[int, bool]:
    """Return SELFDESTRUCT's gas, and whether it creates its beneficiary.

    Source: https://eips.ethereum.org/EIPS/eip-150 · eip-161 · eip-2929
    """
    if frame.message.is_static:
        raise OutOfGas("write protection")
    fork, prices, state = frame.fork, frame.prices, frame.state
    price = prices.selfdestruct
    if not fork.keeps_a_64th:  # before EIP-150
        return price, False
    beneficiary = address_of(frame.stack[-1])
    if prices.cold_account and not state.is_address_warm(beneficiary):
        price += prices.cold_account
        if price > frame.gas_remaining:
            raise OutOfGas("out of gas")
    if fork.clears_empty_accounts:
        is_new = state.world.account_is_empty(beneficiary) and bool(
            state.get_balance(frame.message.storage_address)
        )
    else:
        is_new = not state.world.account_exists(beneficiary)
    return price + (prices.new_beneficiary if is_new else 0), is_new


def selfdestruct_refund(frame: Frame) -> int:
    """Return the refund for a contract's first SELFDESTRUCT in a transaction."""
    is_known = frame.message.storage_address in frame.transaction.effects.destroyed
    return 0 if is_known else frame.prices.selfdestruct_refund


def selfdestruct(frame: Frame) -> None:
    """SELFDESTRUCT: give the balance away, and delete the contract.

    Source: https://eips.ethereum.org/EIPS/eip-6780 · eip-8037 · eip-8246
    """
    # STACK
    values = frame.stack
    if not values:
        raise StackUnderflow(0, 1)
    # GAS
    price, is_new = _selfdestruct_price(frame)
    frame.charge(price)
    if is_new and frame.prices.state is not None:
        frame.charge_state(frame.prices.state.account)
    # OPERATION
    refund = selfdestruct_refund(frame)
    beneficiary, address = address_of(values.pop()), frame.message.storage_address
    world, effects = frame.state.world, frame.transaction.effects
    if frame.prices.cold_account:
        world.mark_address_warm(beneficiary)
    balance = world.get_balance(address)
    is_deleted = not frame.fork.keeps_destroyed_contracts or address in effects.created
    if is_deleted and frame.fork.keeps_destroyed_balance:
        if beneficiary != address:
            world.set_balance(address, 0)
            world.set_balance(beneficiary, world.get_balance(beneficiary) + balance)
        effects.destroyed[address] = None
    elif is_deleted:
        world.set_balance(beneficiary, world.get_balance(beneficiary) + balance)
        world.set_balance(address, 0)  # also what it has given to itself
        effects.destroyed[address] = None
        effects.refund += refund
    else:
        world.set_balance(address, 0)
        world.set_balance(beneficiary, world.get_balance(beneficiary) + balance)
    effects.touched.append(beneficiary)
    frame.log_transfer(address, beneficiary, balance)
    frame.destroy(beneficiary, balance)
