"""Instructions of the control flow and the stack, one by one.

`evm.interpreter.run` has the same without a call. The loop of the stepping tracers uses
these functions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evm.code import check_jump
from evm.frame_errors import StackOverflow, StackUnderflow
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


def _push(frame: Frame, word: int) -> None:
    if len(frame.stack) >= STACK_LIMIT:
        raise StackOverflow(STACK_LIMIT, STACK_LIMIT - 1)
    frame.stack.append(word)
    frame.pc += 1
