"""Instructions that read or write the memory: loads, stores, copies, hashes and logs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sha3 import keccak_256

from evm.frame_errors import OutOfBoundsRead, StackUnderflow, WriteProtection
from evm.memory import memory_cost, memory_end, range_cost
from evm.rules.prices import word_count

if TYPE_CHECKING:
    from evm.frame import Frame

from_bytes = int.from_bytes


def _operands(frame: Frame, count: int) -> list[int]:
    """Return the operands on the stack, the top last. Raises: StackUnderflow."""
    values = frame.stack
    if len(values) < count:
        raise StackUnderflow(len(values), count)
    return values


# Words


def word_cost(frame: Frame) -> int:
    """Return the gas of MLOAD and MSTORE."""
    return range_cost(frame.memory, frame.stack[-1], 32)


def mload(frame: Frame) -> None:
    """MLOAD: push a word of the memory."""
    # STACK
    values = frame.stack
    if not values:
        raise StackUnderflow(0, 1)
    start = values[-1]
    # GAS
    if start + 32 > len(frame.memory):
        frame.expand(start, 32)
    # OPERATION
    values[-1] = from_bytes(frame.memory[start : start + 32], "big")
    # PROGRAM COUNTER
    frame.pc += 1


def mstore(frame: Frame) -> None:
    """MSTORE: write a word into the memory."""
    # STACK
    values = frame.stack
    if len(values) < 2:
        raise StackUnderflow(len(values), 2)
    start = values[-1]
    # GAS
    if start + 32 > len(frame.memory):
        frame.expand(start, 32)
    # OPERATION
    values.pop()
    frame.memory[start : start + 32] = values.pop().to_bytes(32, "big")
    # PROGRAM COUNTER
    frame.pc += 1


def byte_cost(frame: Frame) -> int:
    """Return the gas of MSTORE8."""
    return range_cost(frame.memory, frame.stack[-1], 1)


def mstore8(frame: Frame) -> None:
    """MSTORE8: write a byte into the memory."""
    # STACK
    values = _operands(frame, 2)
    # GAS
    frame.expand(values[-1], 1)
    # OPERATION
    start = values.pop()
    frame.memory[start] = values.pop() & 0xFF
    # PROGRAM COUNTER
    frame.pc += 1


# Copies


def copy_cost(frame: Frame) -> int:
    """Return the gas of copying to memory: target, source, size."""
    target, _, size = frame.stack[-1:-4:-1]
    end = memory_end(target, size)
    return memory_cost(frame.memory, end) + frame.prices.copy_word * word_count(size)


def _copy(frame: Frame, source: bytes | memoryview) -> None:
    """Copy bytes to memory. Bytes beyond the end of the source are zero."""
    # STACK
    values = _operands(frame, 3)
    # GAS
    frame.charge(copy_cost(frame))
    # OPERATION
    target, start, size = values.pop(), values.pop(), values.pop()
    if size:
        write(frame, target, source[start : start + size], size)
    # PROGRAM COUNTER
    frame.pc += 1


def write(frame: Frame, target: int, data: bytes | memoryview, size: int) -> None:
    """Write data into memory that was paid for, and zeros after it up to a size."""
    frame.grow(target + size)
    frame.memory[target : target + size] = bytes(data).ljust(size, b"\x00")


def calldatacopy(frame: Frame) -> None:
    """CALLDATACOPY: copy a part of the input to memory."""
    _copy(frame, frame.message.data)


def codecopy(frame: Frame) -> None:
    """CODECOPY: copy a part of the executing code to memory."""
    _copy(frame, frame.code)


def returndatacopy(frame: Frame) -> None:
    """RETURNDATACOPY: copy a part of what the last call returned (EIP-211)."""
    # STACK
    values = _operands(frame, 3)
    # GAS
    frame.charge(copy_cost(frame))
    # OPERATION
    target, start, size = values[-1:-4:-1]
    if start + size > len(frame.return_data):
        raise OutOfBoundsRead
    del values[-3:]
    if size:
        write(frame, target, frame.return_data[start : start + size], size)
    # PROGRAM COUNTER
    frame.pc += 1


def mcopy_cost(frame: Frame) -> int:
    """Return the gas of MCOPY, which expands the memory to the end of both ranges."""
    target, source, size = frame.stack[-1:-4:-1]
    end = memory_end(max(target, source), size)
    return memory_cost(frame.memory, end) + frame.prices.copy_word * word_count(size)


def mcopy(frame: Frame) -> None:
    """MCOPY: copy within the memory (EIP-5656)."""
    # STACK
    values = _operands(frame, 3)
    # GAS
    frame.charge(mcopy_cost(frame))
    # OPERATION
    target, source, size = values.pop(), values.pop(), values.pop()
    if size:
        frame.grow(max(target, source) + size)
        memory = frame.memory
        memory[target : target + size] = memory[source : source + size]
    # PROGRAM COUNTER
    frame.pc += 1


def calldataload(frame: Frame) -> None:
    """CALLDATALOAD: push a word of the input, with zeros beyond its end."""
    # STACK
    values = frame.stack
    if not values:
        raise StackUnderflow(0, 1)
    # OPERATION
    start = values[-1]
    word = frame.message.data[start : start + 32]
    values[-1] = from_bytes(word, "big") << (32 - len(word)) * 8
    # PROGRAM COUNTER
    frame.pc += 1


# Hashes and logs


def keccak_cost(frame: Frame) -> int:
    """Return the gas of KECCAK256 beyond its constant price."""
    start, size = frame.stack[-1:-3:-1]
    memory = range_cost(frame.memory, start, size)
    return memory + frame.prices.keccak_word * word_count(size)


def keccak256(frame: Frame) -> None:
    """KECCAK256: push the hash of a range of the memory."""
    # STACK
    values = _operands(frame, 2)
    # GAS
    frame.charge(keccak_cost(frame))
    # OPERATION
    start, size = values.pop(), values[-1]
    if size:
        frame.grow(start + size)
    digest = keccak_256(frame.memory[start : start + size]).digest()
    values[-1] = from_bytes(digest, "big")
    # PROGRAM COUNTER
    frame.pc += 1


def log_cost(frame: Frame, topics: int) -> int:
    """Return the gas of LOG0 … LOG4."""
    prices, (start, size) = frame.prices, frame.stack[-1:-3:-1]
    price = prices.log + prices.log_topic * topics + prices.log_byte * size
    return range_cost(frame.memory, start, size) + price


def log(frame: Frame, topics: int) -> None:
    """LOG0 … LOG4: write a log with this number of topics."""
    # STACK
    values = _operands(frame, 2 + topics)
    # GAS
    frame.charge(log_cost(frame, topics))
    # OPERATION
    if frame.message.is_static:
        raise WriteProtection
    start, size = values.pop(), values.pop()
    words = tuple([values.pop().to_bytes(32, "big") for _ in range(topics)])
    if size:
        frame.grow(start + size)
    frame.log(
        frame.message.storage_address, words, bytes(frame.memory[start : start + size])
    )
    # PROGRAM COUNTER
    frame.pc += 1
