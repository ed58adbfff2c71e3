"""CALL, CALLCODE, DELEGATECALL and STATICCALL.

geth charges in steps, and stops at the first one that exceeds the remaining gas: the
account's first access (EIP-2929); memory and transfer (in CALL; in all from EIP-7702 on);
a new account and the access to the delegate (both from EIP-7702 on); the new account's
state gas (EIP-8037). The called frame is given up to 63/64 of the rest (EIP-150).

Source: go-ethereum, core/vm/{gas,gas_table,operations_acl}.go
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from eth_typing import Address

from evm.addresses import ADDRESS_MASK
from evm.delegations import delegate_of
from evm.frame_errors import OutOfGas, StackUnderflow
from evm.memory import MAX_UINT64, memory_cost, memory_end
from evm.message import Message
from evm.opcodes import MAX_DEPTH

if TYPE_CHECKING:
    from evm.frame import Frame

DEPTH = "max call depth exceeded"
BALANCE = "insufficient balance for transfer"


class CallPrice(NamedTuple):
    """The price of a call, and what its computation has found."""

    gas: int
    """Without the gas that is given to the called frame."""
    state_gas: int
    """For a new account."""
    given: int
    """Without the stipend."""
    memory_end: int
    """Bytes of memory that input and output need."""
    code: bytes
    """The code to run."""
    delegate: Address | None
    """The account whose code it is, if the called one delegates (EIP-7702)."""


def _require(gas: int, price: int) -> None:
    """Raise geth's error if a part of the price exceeds the remaining gas."""
    if gas < price:
        raise OutOfGas("out of gas")


def _call_price(frame: Frame, *, has_value: bool, is_call: bool) -> CallPrice:
    """Return the price of a call, whose operands are on the stack.

    has_value: whether the opcode has a value operand (CALL and CALLCODE).
    is_call: whether the opcode is CALL, which alone may create the account.
    """
    values, state, fork, prices = frame.stack, frame.state, frame.fork, frame.prices
    base = 4 if has_value else 3
    end = memory_end(values[-base], values[-base - 1])
    end = max(end, memory_end(values[-base - 2], values[-base - 3]))
    target = _address(values[-2])
    value = values[-3] if has_value else 0
    writes_in_static = is_call and value and frame.message.is_static
    left, cold, state_gas = frame.gas_remaining, 0, 0
    if writes_in_static and fork.has_delegations:
        raise OutOfGas("write protection")
    if prices.cold_account and not state.is_address_warm(target):
        cold = prices.cold_account - prices.warm
        _require(left, cold)
        left -= cold
    if writes_in_static:
        raise OutOfGas("write protection")
    other = memory_cost(frame.memory, end) + (prices.value if value else 0)
    if is_call:
        _require(left, other)
        if fork.clears_empty_accounts:
            is_new = bool(value) and state.world.account_is_empty(target)
        else:
            is_new = not state.world.account_exists(target)
        if is_new:
            other += prices.new_account
            if prices.state is not None:
                state_gas = prices.state.account
    delegate = None
    if fork.has_delegations:
        _require(left, other)
    code = state.get_code(target)
    if fork.has_delegations:
        delegate = delegate_of(code)
        if delegate is not None:
            is_warm = delegate == target or state.is_address_warm(delegate)
            access = prices.warm if is_warm else prices.cold_account
            _require(left, other + access)
            left -= access
            cold += access
            code = state.get_code(delegate)
    spilled = state_gas - frame.reservoir
    if spilled > 0:
        _require(left, other + spilled)
        left -= spilled
    given = values[-1]
    if fork.keeps_a_64th:
        # If the gas does not cover the rest, geth's unsigned subtraction wraps around.
        # The call fails anyway, but the reported cost depends on it.
        kept = (left - other) & MAX_UINT64
        given = min(given, kept - kept // 64)
    elif given > MAX_UINT64:
        raise OutOfGas("gas uint64 overflow")
    if cold + other + given > MAX_UINT64:
        raise OutOfGas("gas uint64 overflow")
    return CallPrice(cold + other, state_gas, given, end, code, delegate)


def call_cost(frame: Frame) -> int:
    """Return the gas of CALL, the gas given to the called frame included."""
    price = _call_price(frame, has_value=True, is_call=True)
    return price.gas + price.given


def callcode_cost(frame: Frame) -> int:
    """Return the gas of CALLCODE, the gas given to the called frame included."""
    price = _call_price(frame, has_value=True, is_call=False)
    return price.gas + price.given


def plain_call_cost(frame: Frame) -> int:
    """Return the gas of DELEGATECALL and STATICCALL, that for the frame included."""
    price = _call_price(frame, has_value=False, is_call=False)
    return price.gas + price.given


def call(frame: Frame) -> None:
    """CALL: run an account's code (EIP-150, EIP-161, EIP-2929, EIP-7702)."""
    # STACK
    values = frame.stack
    if len(values) < 7:
        raise StackUnderflow(len(values), 7)
    # GAS
    price = _call_price(frame, has_value=True, is_call=True)
    frame.charge(price.gas + price.given)
    if price.state_gas:
        frame.charge_state(price.state_gas)
    # OPERATION
    own, target = frame.message, _address(values[-2])
    _run(frame, "CALL", price, 4, target, own.storage_address, values[-3], target)
    if price.state_gas and not values[-1]:
        frame.return_state(price.state_gas)
    # PROGRAM COUNTER
    frame.pc += 1


def callcode(frame: Frame) -> None:
    """CALLCODE: run an account's code on the own storage (EIP-150, EIP-2929)."""
    # STACK
    values = frame.stack
    if len(values) < 7:
        raise StackUnderflow(len(values), 7)
    # GAS
    price = _call_price(frame, has_value=True, is_call=False)
    frame.charge(price.gas + price.given)
    # OPERATION
    own, target = frame.message.storage_address, _address(values[-2])
    _run(frame, "CALLCODE", price, 4, own, own, values[-3], target)
    # PROGRAM COUNTER
    frame.pc += 1


def delegatecall(frame: Frame) -> None:
    """DELEGATECALL: run code as a part of the own call (EIP-7, EIP-150, EIP-2929)."""
    # STACK
    values = frame.stack
    if len(values) < 6:
        raise StackUnderflow(len(values), 6)
    # GAS
    price = _call_price(frame, has_value=False, is_call=False)
    frame.charge(price.gas + price.given)
    # OPERATION
    own, target = frame.message, _address(values[-2])
    to, sender = own.storage_address, own.sender
    _run(frame, "DELEGATECALL", price, 3, to, sender, own.value, target)
    # PROGRAM COUNTER
    frame.pc += 1


def staticcall(frame: Frame) -> None:
    """STATICCALL: run an account's code, which must not write (EIP-214, EIP-2929)."""
    # STACK
    values = frame.stack
    if len(values) < 6:
        raise StackUnderflow(len(values), 6)
    # GAS
    price = _call_price(frame, has_value=False, is_call=False)
    frame.charge(price.gas + price.given)
    # OPERATION
    own, target = frame.message, _address(values[-2])
    _run(frame, "STATICCALL", price, 3, target, own.storage_address, 0, target)
    # PROGRAM COUNTER
    frame.pc += 1


def _address(word: int) -> Address:
    return Address((word & ADDRESS_MASK).to_bytes(20, "big"))


def _run(
    frame: Frame,
    name: str,
    price: CallPrice,
    first: int,
    to: Address,
    sender: Address,
    value: int,
    target: Address,
) -> None:
    """Run a call that was paid for, and push whether it succeeded.

    name: of the instruction. first: position of the input's start in the stack.
    to: the account for which the code runs. target: the called one.
    """
    own, state, values = frame.message, frame.state, frame.stack
    start, size, output_start, output_size = values[-first : -first - 4 : -1]
    del values[-first - 3 :]
    if frame.prices.cold_account:
        state.world.mark_address_warm(target)
        if price.delegate is not None:
            state.world.mark_address_warm(price.delegate)
    frame.grow(price.memory_end)
    has_value = first == 4  # the value is an operand, and is transferred
    paid = value if has_value else 0
    message = Message(
        price.given + frame.prices.stipend if paid else price.given,
        to,
        sender,
        value,
        memoryview(frame.memory)[start : start + size] if size else b"",
        price.code,
        own.depth + 1,
        None,
        target,
        has_value,
        own.is_static or name == "STATICCALL",
        price.delegate,
    )
    if own.depth >= MAX_DEPTH or (
        paid and state.get_balance(own.storage_address) < paid
    ):
        error = DEPTH if own.depth >= MAX_DEPTH else BALANCE
        frame.return_data = b""
        frame.gas_remaining += message.gas
        values.append(0)
        frame.refuse_child(name, message, error, 0)
        return
    child = frame.run_child(name, message)
    frame.return_data = output = child.output
    values.append(1 if child.error is None else 0)
    if output_size and output:
        output = output[:output_size]
        frame.memory[output_start : output_start + len(output)] = output
    # After errors other than REVERT, no gas remains.
    frame.gas_remaining += child.gas_remaining
    if frame.prices.state is not None:
        frame.absorb_state(child)
