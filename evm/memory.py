"""The price of a frame's memory, with the limits that geth has.

Source: go-ethereum, core/vm/{common,gas_table}.go
"""

from __future__ import annotations

from evm.frame_errors import GasOverflow, OutOfGas
from evm.rules.prices import memory_gas

MAX_UINT64 = 2**64 - 1
MAX_MEMORY = 0x1FFFFFFFE0
"""Largest memory size in bytes for which geth computes a price."""


def memory_end(start: int, size: int) -> int:
    """Return the size of the memory that covers a range, in bytes.

    Raises: GasOverflow if the range exceeds 64 bits.
    """
    if not size:
        return 0
    end = start + size
    if size > MAX_UINT64 or end > MAX_UINT64 - 31:
        raise GasOverflow
    return end


def memory_cost(memory: bytearray, end: int) -> int:
    """Return the gas of expanding a memory to `end` bytes.

    Raises: OutOfGas if the memory is larger than any gas limit can pay for.
    """
    before = len(memory)
    if end <= before:
        return 0
    after = (end + 31) & ~31
    if after > MAX_MEMORY:
        raise OutOfGas("gas uint64 overflow")
    return memory_gas(after) - memory_gas(before)


def range_cost(memory: bytearray, start: int, size: int) -> int:
    """Return the gas of memory that covers a range. Raises: GasOverflow, OutOfGas."""
    return memory_cost(memory, memory_end(start, size))
