"""What an instruction will cost, before it is executed.

py-evm takes gas piece by piece while an instruction runs; a tracer is told the whole
of it beforehand, and with it whether, and why, the instruction can't be paid for. The
functions here look and change nothing. The order of what they look at is geth's,
because it decides what a failure is called.
Source: go-ethereum, core/vm/{interpreter,gas_table,operations_acl}.go
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

MAXIMUM = 2**64 - 1
MAX_MEMORY = 0x1FFFFFFFE0
"""Bytes; beyond it the price of memory is not computed."""
ADDRESS_MASK = 2**160 - 1

COLD_ACCOUNT_GAS = 2600
COLD_SLOT_GAS = 2100
WARM_GAS = 100
NEW_ACCOUNT_GAS = 25_000
VALUE_GAS = 9000
COPY_WORD_GAS = 3
KECCAK_WORD_GAS = 6
INIT_CODE_WORD_GAS = 2
LOG_GAS = 375
LOG_TOPIC_GAS = 375
LOG_BYTE_GAS = 8
EXP_GAS = 10

Values = list[int]
Cost = Callable[[Any, Values, int], int]
"""(frame, stack, gas left after the constant part) → gas that comes on top."""


class Unpayable(Exception):
    """An instruction whose cost can't even be computed; the text is geth's."""


class GasOverflow(Unpayable):
    """A memory range that goes beyond 64 bits."""

    def __init__(self) -> None:
        super().__init__("gas uint64 overflow")


class OutOfGas(Unpayable):
    """What fails while the variable part of the cost is computed."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"out of gas: {reason}")


def address_of(word: int) -> bytes:
    """Return the address in a stack item."""
    return (word & ADDRESS_MASK).to_bytes(20, "big")


def forbid_in_static(frame: Any) -> None:
    """Raise what geth has for a write within STATICCALL."""
    if frame.msg.is_static:
        raise OutOfGas("write protection")


# Memory


def memory_end(start: int, size: int) -> int:
    """Return the bytes of memory that a range asks for. Raises: GasOverflow."""
    if size > MAXIMUM:
        raise GasOverflow
    if not size:
        return 0
    end = start + size
    if end > MAXIMUM - 31:
        raise GasOverflow
    return end


def memory_cost(frame: Any, end: int) -> int:
    """Return the gas of expanding memory up to `end`. Raises: OutOfGas."""
    before = len(frame._memory._bytes)
    if end <= before:
        return 0
    if (end + 31) & ~31 > MAX_MEMORY:
        raise OutOfGas("gas uint64 overflow")
    old, new = before >> 5, (end + 31) >> 5
    return (new - old) * 3 + (new * new >> 9) - (old * old >> 9)


def range_cost(start: int, size: int) -> Cost:
    """Return the cost of a range whose bounds lie that deep in the stack, 1 the top."""

    def cost(frame: Any, values: Values, gas: int) -> int:
        return memory_cost(frame, memory_end(values[-start], values[-size]))

    return cost


def fixed_range_cost(size: int) -> Cost:
    """Return the cost of that many bytes from where the top of the stack points."""

    def cost(frame: Any, values: Values, gas: int) -> int:
        return memory_cost(frame, memory_end(values[-1], size))

    return cost


def copy_cost(start: int, size: int) -> Cost:
    """Return the cost of copying into memory."""

    def cost(frame: Any, values: Values, gas: int) -> int:
        length = values[-size]
        end = memory_end(values[-start], length)
        return memory_cost(frame, end) + COPY_WORD_GAS * ((length + 31) >> 5)

    return cost


def memory_copy_cost(frame: Any, values: Values, gas: int) -> int:
    """Return MCOPY's cost: memory reaches as far as either of its ranges."""
    length = values[-3]
    end = memory_end(max(values[-1], values[-2]), length)
    return memory_cost(frame, end) + COPY_WORD_GAS * ((length + 31) >> 5)


def keccak_cost(frame: Any, values: Values, gas: int) -> int:
    """Return KECCAK256's cost."""
    end = memory_end(values[-1], values[-2])
    return memory_cost(frame, end) + KECCAK_WORD_GAS * ((values[-2] + 31) >> 5)


def log_cost(topics: int) -> Cost:
    """Return the cost of LOG0 … LOG4."""

    def cost(frame: Any, values: Values, gas: int) -> int:
        end = memory_end(values[-1], values[-2])
        fixed = LOG_GAS + LOG_TOPIC_GAS * topics
        return memory_cost(frame, end) + fixed + LOG_BYTE_GAS * values[-2]

    return cost


def exp_cost(byte_gas: int) -> Cost:
    """Return EXP's cost by the length of the exponent."""

    def cost(frame: Any, values: Values, gas: int) -> int:
        return EXP_GAS + byte_gas * ((values[-2].bit_length() + 7) >> 3)

    return cost


# Accounts and slots


def cold_account_cost(frame: Any, values: Values, gas: int) -> int:
    """Return what the first access of an account costs above the others."""
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
    """Return the cost of CREATE and CREATE2, without the gas given to the init code.

    word_gas: for each word of init code.
    """

    def cost(frame: Any, values: Values, gas: int) -> int:
        size = values[-3]
        end = memory_end(values[-2], size)
        forbid_in_static(frame)
        memory = memory_cost(frame, end)
        if max_init_code_size is not None and size > max_init_code_size:
            raise OutOfGas(
                f"max initcode size exceeded: code size {size} "
                f"limit {max_init_code_size}"
            )
        return memory + word_gas * ((size + 31) >> 5)

    return cost
