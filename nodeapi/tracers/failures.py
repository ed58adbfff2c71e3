"""Why a frame failed, in geth's words.

py-evm looks at gas, stack and memory in its own order and while an instruction runs;
geth looks at the stack, the constant gas, the reach of memory and the rest of the gas
before it. What fails is the same, what it is called is not: so here the instruction
that failed is priced again, as far as is left of what it found.
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

from nodeapi.evm.code import STOP
from nodeapi.evm.computation import CODE_DEPOSIT_GAS, ShortOfGas, memory_gas
from nodeapi.evm.interpreter import OutOfConstantGas
from nodeapi.tracers.costs import MAX_MEMORY, Unpayable
from nodeapi.tracers.frames import OUT_OF_GAS, REVERTED, UNPAID_CODE
from nodeapi.tracers.opcodes import NUMBERS, OPCODES
from nodeapi.tracers.precompile_failures import precompile_failure
from nodeapi.tracers.prices import Price, price_list
from nodeapi.tracers.watched_opcodes import REMEMBERED

MAX_CODE_SIZE = 24_576
"""Bytes: https://eips.ethereum.org/EIPS/eip-170."""

WRITE_PROTECTION = "write protection"

_JUMPS = {NUMBERS["JUMP"], NUMBERS["JUMPI"]}
_CALLS = {NUMBERS[n] for n in ("CALL", "CALLCODE", "DELEGATECALL", "STATICCALL")}
_RETURN_DATA_COPY = NUMBERS["RETURNDATACOPY"]

_OVERFLOW = "gas uint64 overflow"
_MEMORY_OVERFLOW = f"{OUT_OF_GAS}: {_OVERFLOW}"
_LOAD = "charges implicit account load"
"""In the reason for which py-evm's calls take the gas of a first access."""


def failure(frame: Any, error: VMError) -> str:
    """Return why a frame failed; it must not have been cleaned up yet.

    frame: a `nodeapi.tracers.watching` one.
    """
    if isinstance(error, Revert):
        return REVERTED
    if frame.msg.code_address in frame.precompiles:
        return precompile_failure(frame, error)
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
    """Return how many items the stack had before the instruction, up to its needs."""
    if isinstance(error, OutOfConstantGas):
        return len(frame._stack.values)
    if op in REMEMBERED:
        return len(frame.before[0])
    if isinstance(error, FullStack):
        return len(frame._stack.values)
    if not isinstance(error, InsufficientStack):
        return OPCODES[op].taken  # They were there, and are gone.
    if isinstance(error.__context__, IndexError):
        # Of an instruction that takes two: there was the first one, or not even that.
        first_missing = "pop from empty list" in str(error.__context__)
        return 0 if first_missing else OPCODES[op].taken - 1
    return len(frame._stack.values)


def _unpaid(frame: Any, error: VMError, op: int, price: Price) -> str:
    """Return what stopped an instruction that had its operands."""
    if isinstance(error, OutOfConstantGas):
        items, gas = frame._stack.values, error.gas
    elif op in REMEMBERED:
        items, gas = frame.before
    else:
        return _memory_failure(frame, error)
    gas -= price.constant
    if gas < 0:
        return OUT_OF_GAS
    if op in _CALLS and _LOAD in str(error):
        # Beyond the constant part: of a cold account, or of its delegate.
        return f"{OUT_OF_GAS}: {OUT_OF_GAS}"
    try:
        variable = price.cost(frame, items, gas) if price.cost else 0
    except Unpayable as reason:
        return str(reason)
    if isinstance(error, OutOfGas) or variable > gas:
        return OUT_OF_GAS
    return "return data out of bounds" if op == _RETURN_DATA_COPY else WRITE_PROTECTION


def _memory_failure(frame: Any, error: VMError) -> str:
    """Return what it is called when memory can't be paid for.

    The price says how far it would have reached, in words of 32 bytes.
    """
    if not isinstance(error, ShortOfGas) or error.reason != "Expanding memory":
        return OUT_OF_GAS
    price = error.amount + memory_gas(len(frame._memory._bytes))
    if price >= memory_gas(2**64):
        return _OVERFLOW
    return _MEMORY_OVERFLOW if price > memory_gas(MAX_MEMORY) else OUT_OF_GAS


def creation_failure(frame: Any) -> str:
    """Return why the code that a creation returned was not accepted."""
    code = frame._output
    if frame.state.fork.has_base_fee and code[:1] == b"\xef":
        return "invalid code: must not begin with 0xef"
    if frame._gas_meter.gas_remaining < CODE_DEPOSIT_GAS * len(code):
        return UNPAID_CODE
    return f"max code size exceeded: code size {len(code)} limit {MAX_CODE_SIZE}"
