"""Instructions of the control flow and the stack, one by one.

`evm.interpreter.run` has the same without a call. The loop of the stepping tracers uses
these functions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evm.code import check_jump
from evm.frame_errors import InvalidOpcode, StackOverflow, StackUnderflow
from evm.opcodes import STACK_LIMIT

if TYPE_CHECKING:
    from evm.frame import Frame


def pop(frame: Frame) -> None:
    """POP: remove the top of the stack."""
    if not frame.stack:
        raise StackUnderflow(0, 1)
    frame.stack.pop()
    frame.pc += 1


def jump(frame: Frame) -> None:
    """JUMP: go on at a position of the code."""
    if not frame.stack:
        raise StackUnderflow(0, 1)
    check_jump(frame.code, frame.stack[-1])
    frame.pc = frame.stack.pop()


def jumpi(frame: Frame) -> None:
    """JUMPI: go on at a position of the code if the item below is not 0."""
    values = frame.stack
    if len(values) < 2:
        raise StackUnderflow(len(values), 2)
    if values[-2]:
        check_jump(frame.code, values[-1])
        frame.pc = values[-1]
    else:
        frame.pc += 1
    del values[-2:]


def jumpdest(frame: Frame) -> None:
    """JUMPDEST: do nothing. Jumps may lead here."""
    frame.pc += 1


def pc(frame: Frame) -> None:
    """PC: push the position of this instruction."""
    _push(frame, frame.pc)


def gas(frame: Frame) -> None:
    """GAS: push the remaining gas, after the price of this instruction."""
    _push(frame, frame.gas_remaining)


def stop(frame: Frame) -> None:
    """STOP: end the frame without output."""


def dupn(frame: Frame) -> None:
    """DUPN: push a copy of the n-th item, 17 ≤ n ≤ 235 (EIP-8024)."""
    # STACK
    values = frame.stack
    if not values:
        raise StackUnderflow(0, 1)
    if len(values) >= STACK_LIMIT:
        raise StackOverflow(STACK_LIMIT, STACK_LIMIT - 1)
    depth = _depth(frame, "DUPN")
    if len(values) < depth:
        raise StackUnderflow(len(values), depth)
    # OPERATION
    values.append(values[-depth])
    # PROGRAM COUNTER
    frame.pc += 2


def swapn(frame: Frame) -> None:
    """SWAPN: swap the top with the item n below it, 17 ≤ n ≤ 235 (EIP-8024)."""
    # STACK
    values = frame.stack
    if len(values) < 2:
        raise StackUnderflow(len(values), 2)
    depth = _depth(frame, "SWAPN")
    if len(values) <= depth:
        raise StackUnderflow(len(values), depth + 1)
    # OPERATION
    values[-1], values[-1 - depth] = values[-1 - depth], values[-1]
    # PROGRAM COUNTER
    frame.pc += 2


def exchange(frame: Frame) -> None:
    """EXCHANGE: swap the items n and m below the top, n < m, n + m ≤ 30 (EIP-8024)."""
    # STACK
    values, byte = frame.stack, _immediate(frame)
    if len(values) < 2:
        raise StackUnderflow(len(values), 2)
    if 81 < byte < 128:
        raise InvalidOpcode(f"EXCHANGE (operand: 0x{byte:02x})")
    row, column = divmod(byte ^ 143, 16)
    first, second = (row + 1, column + 1) if row < column else (column + 1, 29 - row)
    if len(values) <= second:
        raise StackUnderflow(len(values), second + 1)
    # OPERATION
    values[-1 - first], values[-1 - second] = values[-1 - second], values[-1 - first]
    # PROGRAM COUNTER
    frame.pc += 2


def _immediate(frame: Frame) -> int:
    """Return the byte after the opcode, 0 beyond the end of the code."""
    position = frame.pc + 1
    return frame.code[position] if position < len(frame.code) else 0


def _depth(frame: Frame, name: str) -> int:
    """Return the depth that DUPN or SWAPN has in its second byte (EIP-8024).

    Some bytes are excluded, so that no jump destination of older code becomes a part of
    an instruction. Raises: InvalidOpcode.
    """
    byte = _immediate(frame)
    if 90 < byte < 128:
        raise InvalidOpcode(f"{name} (operand: 0x{byte:02x})")
    return (byte + 145) % 256


def _push(frame: Frame, word: int) -> None:
    if len(frame.stack) >= STACK_LIMIT:
        raise StackOverflow(STACK_LIMIT, STACK_LIMIT - 1)
    frame.stack.append(word)
    frame.pc += 1
