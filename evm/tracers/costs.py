"""The cost of an instruction, computed before its execution.

py-evm charges gas in parts while an instruction is executed. A tracer needs the total
cost in advance, and the reason if the remaining gas does not suffice. These functions
change nothing. They check in geth's order, because it determines the reported error.

Source: go-ethereum, core/vm/{interpreter,gas_table,operations_acl}.go
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from evm.gas import (
    COLD_ACCOUNT_GAS,
    COLD_SLOT_GAS,
    COPY_WORD_GAS,
    KECCAK_WORD_GAS,
    LOG_BYTE_GAS,
    LOG_TOPIC_GAS,
    WARM_GAS,
    memory_gas,
    word_count,
)
from evm.stack import address_of

MAXIMUM = 2**64 - 1
MAX_MEMORY = 0x1FFFFFFFE0
"""Largest memory size in bytes for which geth computes a price."""

Values = list[int]
Cost = Callable[[Any, Values, int], int]
"""(frame, stack, gas left after the constant part) → variable part of the cost."""


class Unpayable(Exception):
    """Raised when the cost of an instruction can't be computed.

    The message is geth's.
    """


class GasOverflow(Unpayable):
    """Raised for a memory range that exceeds 64 bits."""

    def __init__(self) -> None:
        super().__init__("gas uint64 overflow")


class OutOfGas(Unpayable):
    """Raised when gas runs out during the computation of the variable cost."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"out of gas: {reason}")


def forbid_in_static(frame: Any) -> None:
    """Raise geth's error if the frame is static (STATICCALL)."""
    if frame.msg.is_static:
        raise OutOfGas("write protection")


# Memory


def memory_end(start: int, size: int) -> int:
    """Return the size of the memory that covers a range, in bytes.

    Raises: GasOverflow if the range exceeds 64 bits.
    """
    if size > MAXIMUM:
        raise GasOverflow
    if not size:
        return 0
    end = start + size
    if end > MAXIMUM - 31:
        raise GasOverflow
    return end


def memory_cost(frame: Any, end: int) -> int:
    """Return the gas of expanding the memory to `end` bytes.

    Raises: OutOfGas if the memory is larger than any gas limit can pay for.
    """
    before = len(frame.memory)
    if end <= before:
        return 0
    if (end + 31) & ~31 > MAX_MEMORY:
        raise OutOfGas("gas uint64 overflow")
    return memory_gas(word_count(end) << 5) - memory_gas(before)


def range_cost(start: int, size: int) -> Cost:
    """Return the cost function of a memory range.

    start, size: positions of its bounds in the stack. 1 is the top.
    """

    def cost(frame: Any, values: Values, gas: int) -> int:
        return memory_cost(frame, memory_end(values[-start], values[-size]))

    return cost


def fixed_range_cost(size: int) -> Cost:
    """Return the cost function of a memory range of a fixed size in bytes.

    The top of the stack is the start of the range.
    """

    def cost(frame: Any, values: Values, gas: int) -> int:
        return memory_cost(frame, memory_end(values[-1], size))

    return cost


def copy_cost(start: int, size: int) -> Cost:
    """Return the cost function of an instruction that copies into memory."""

    def cost(frame: Any, values: Values, gas: int) -> int:
        length = values[-size]
        end = memory_end(values[-start], length)
        return memory_cost(frame, end) + COPY_WORD_GAS * word_count(length)

    return cost


def memory_copy_cost(frame: Any, values: Values, gas: int) -> int:
    """Return the variable part of MCOPY's cost.

    It expands memory to the end of both ranges.
    """
    length = values[-3]
    end = memory_end(max(values[-1], values[-2]), length)
    return memory_cost(frame, end) + COPY_WORD_GAS * word_count(length)


def keccak_cost(frame: Any, values: Values, gas: int) -> int:
    """Return the variable part of KECCAK256's cost, in gas."""
    end = memory_end(values[-1], values[-2])
    return memory_cost(frame, end) + KECCAK_WORD_GAS * word_count(values[-2])


def log_cost(base: int, topics: int) -> Cost:
    """Return the cost function of LOG0 … LOG4. base: price of the opcode."""
    fixed = base + LOG_TOPIC_GAS * topics

    def cost(frame: Any, values: Values, gas: int) -> int:
        end = memory_end(values[-1], values[-2])
        return memory_cost(frame, end) + fixed + LOG_BYTE_GAS * values[-2]

    return cost


def exp_cost(base: int, byte_gas: int) -> Cost:
    """Return EXP's cost function.

    base: price of the opcode. byte_gas: price per byte of the exponent.
    """

    def cost(frame: Any, values: Values, gas: int) -> int:
        return base + byte_gas * ((values[-2].bit_length() + 7) >> 3)

    return cost


# Accounts and slots


def cold_account_cost(frame: Any, values: Values, gas: int) -> int:
    """Return the surcharge for the first access to an account (EIP-2929)."""
    warm = frame.state.is_address_warm(address_of(values[-1]))
    return 0 if warm else COLD_ACCOUNT_GAS - WARM_GAS


def cold_code_copy_cost(frame: Any, values: Values, gas: int) -> int:
    """Return EXTCODECOPY's cost from Berlin on."""
    return _CODE_COPY(frame, values, gas) + cold_account_cost(frame, values, gas)


_CODE_COPY = copy_cost(2, 4)


def slot_load_cost(frame: Any, values: Values, gas: int) -> int:
    """Return SLOAD's cost from Berlin on."""
    warm = frame.state.is_storage_warm(frame.msg.storage_address, values[-1])
    return WARM_GAS if warm else COLD_SLOT_GAS


# Creations


def create_cost(word_gas: int, max_init_code_size: int | None) -> Cost:
    """Return the cost function of CREATE or CREATE2, without the init code's gas.

    word_gas: price of each word of init code.
    """

    def cost(frame: Any, values: Values, gas: int) -> int:
        size = values[-3]
        memory = memory_cost(frame, memory_end(values[-2], size))
        if max_init_code_size is not None and size > max_init_code_size:
            raise OutOfGas(
                f"max initcode size exceeded: code size {size} "
                f"limit {max_init_code_size}"
            )
        return memory + word_gas * word_count(size)

    return cost
