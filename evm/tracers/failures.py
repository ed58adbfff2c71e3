"""geth's error texts for failed frames.

py-evm checks gas, stack and memory in its own order while an instruction is executed.
geth checks the stack, the constant gas, the memory range and the remaining gas before
the instruction. The same instructions fail, but the first failed check differs.
Therefore the cost of the failed instruction is computed again, from the values that are
left.

Source: go-ethereum, core/vm/{errors,interpreter,contracts}.go
"""

from __future__ import annotations

from typing import Any

from eth.exceptions import (
    FullStack,
    InsufficientStack,
    OutOfGas,
    Revert,
    VMError,
)

from evm.code import STOP
from evm.delegations import delegate_of
from evm.frame_errors import (
    OutOfConstantGas,
    ShortOfAccountGas,
    ShortOfDelegateGas,
    ShortOfGas,
    ShortOfMemoryGas,
    ShortOfTransferGas,
)
from evm.gas import (
    CODE_DEPOSIT_GAS,
    COLD_ACCOUNT_GAS,
    VALUE_GAS,
    WARM_GAS,
    memory_gas,
)
from evm.opcodes import NUMBERS, OPCODES
from evm.stack import address_of
from evm.tracers.costs import (
    MAX_MEMORY,
    Unpayable,
)
from evm.tracers.frames import OUT_OF_GAS, REVERTED, UNPAID_CODE
from evm.tracers.prices import Price, price_list
from evm.tracers.watched_opcodes import SAVING_OPCODES

MAX_CODE_SIZE = 24_576
"""Bytes: https://eips.ethereum.org/EIPS/eip-170."""

WRITE_PROTECTION = "write protection"

_JUMPS = {NUMBERS["JUMP"], NUMBERS["JUMPI"]}
_CALLS = {NUMBERS[n] for n in ("CALL", "CALLCODE", "DELEGATECALL", "STATICCALL")}
_CALL = NUMBERS["CALL"]
_SELFDESTRUCT = NUMBERS["SELFDESTRUCT"]
_WITH_VALUE = {NUMBERS["CALL"], NUMBERS["CALLCODE"]}
_RETURN_DATA_COPY = NUMBERS["RETURNDATACOPY"]

_OVERFLOW = "gas uint64 overflow"
_MEMORY_OVERFLOW = f"{OUT_OF_GAS}: {_OVERFLOW}"


def failure(frame: Any, error: VMError) -> str:
    """Return geth's text for a frame's error.

    frame: a `WatchedFrame` with stack and memory as of the error.
    """
    if isinstance(error, Revert):
        return REVERTED
    if frame.msg.code_address in frame.precompiles:
        return OUT_OF_GAS if isinstance(error, OutOfGas) else str(error)
    code, position = frame.code.raw, frame.code.program_counter
    op = code[position] if position < len(code) else STOP
    price = price_list(frame.state.fork)[op]
    if not price.is_valid:
        return f"invalid opcode: {OPCODES[op].name}"
    items = _items(frame, error, op)
    if items < price.taken:
        return f"stack underflow ({items} <=> {price.taken})"
    if items > price.maximum:
        return f"stack limit reached {items} ({price.maximum})"
    if op in _JUMPS and not isinstance(error, OutOfGas):
        return "invalid jump destination"
    return _unpaid(frame, error, op, price)


def _items(frame: Any, error: VMError, op: int) -> int:
    """Return the number of stack items before the instruction.

    At most as many are counted as the instruction pops.
    """
    if isinstance(error, OutOfConstantGas):
        return len(frame.stack)
    if op in SAVING_OPCODES:
        return len(frame.before[0])
    if isinstance(error, FullStack):
        return len(frame.stack)
    if not isinstance(error, InsufficientStack):
        return OPCODES[op].taken  # The operands existed and were popped.
    return len(frame.stack)  # Nothing has been popped.


def _unpaid(frame: Any, error: VMError, op: int, price: Price) -> str:
    """Return the text for an instruction that failed although it had its operands."""
    if isinstance(error, OutOfConstantGas):
        items, gas = frame.stack, error.gas
    elif op in SAVING_OPCODES:
        items, gas = frame.before
    else:
        return _memory_failure(frame, error)
    gas -= price.constant
    if gas < 0:
        return OUT_OF_GAS
    if isinstance(error, ShortOfAccountGas | ShortOfDelegateGas):
        return _unpaid_account(frame, error, op, gas)
    is_short = isinstance(error, ShortOfGas)
    if op == _SELFDESTRUCT and is_short and error.amount == COLD_ACCOUNT_GAS:
        return f"{OUT_OF_GAS}: {OUT_OF_GAS}"
    if op in _CALLS and isinstance(error, OutOfGas):
        # Parts that were charged before the error cost nothing when computed again,
        # because the account is warm and the memory is expanded. geth charges the
        # delegate's access later.
        gas = frame.gas_remaining
        has_paid_accounts = isinstance(error, ShortOfTransferGas)
        has_delegations = frame.state.fork.has_delegations
        if has_paid_accounts and has_delegations and _delegates(frame, items):
            gas += frame.delegate_gas
    try:
        variable = price.cost(frame, items, gas) if price.cost else 0
    except Unpayable as unpayable:
        return str(unpayable)
    if isinstance(error, OutOfGas) or variable > gas:
        return OUT_OF_GAS
    return "return data out of bounds" if op == _RETURN_DATA_COPY else WRITE_PROTECTION


def _delegates(frame: Any, items: list[int]) -> bool:
    """Return whether the account that a call names delegates to another one."""
    return delegate_of(frame.state.get_code(address_of(items[-2]))) is not None


def _unpaid_account(frame: Any, error: ShortOfGas, op: int, gas: int) -> str:
    """Return the text for a call that can't pay for its account or its delegate.

    gas: left after the constant part. The memory has been paid for. geth charges in
        another order, and stops at the first step that exceeds the gas: the account;
        memory and value (until EIP-7702 only in CALL); from EIP-7702 on, a new account
        and the delegate.
    """
    stopped, late = f"{OUT_OF_GAS}: {OUT_OF_GAS}", OUT_OF_GAS
    if isinstance(error, ShortOfDelegateGas):
        left = gas - (frame.account_gas - WARM_GAS)
        # A delegating account is not a new account.
        extra = VALUE_GAS if op in _WITH_VALUE and frame.before[0][-3] else 0
        remaining = frame.gas_remaining
        return stopped if remaining < extra or left < error.amount else late
    asks_in_between = op == _CALL or frame.state.fork.has_delegations
    return stopped if asks_in_between or gas < error.amount - WARM_GAS else late


def _memory_failure(frame: Any, error: VMError) -> str:
    """Return the text for memory that can't be paid for.

    The requested size is computed from its price.
    """
    if not isinstance(error, ShortOfMemoryGas):
        return OUT_OF_GAS
    price = error.amount + memory_gas(len(frame.memory))
    if price >= memory_gas(2**64):
        return _OVERFLOW
    return _MEMORY_OVERFLOW if price > memory_gas(MAX_MEMORY) else OUT_OF_GAS


def creation_failure(frame: Any) -> str:
    """Return the text for a creation whose code was rejected."""
    code = frame.output
    if frame.state.fork.has_base_fee and code[:1] == b"\xef":
        return "invalid code: must not begin with 0xef"
    if frame.gas_remaining < CODE_DEPOSIT_GAS * len(code):
        return UNPAID_CODE
    return f"max code size exceeded: code size {len(code)} limit {MAX_CODE_SIZE}"
