"""The interpreter's loop, which executes code instruction by instruction.

`evm.instructions` has a function for each instruction. The most frequent ones (push,
duplicate, swap, jump, arithmetic) are executed here without a call of their function.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from evm.code import STOP, check_jump
from evm.frame_errors import FrameError, OutOfGas, StackOverflow, StackUnderflow
from evm.instructions.kinds import (
    COMPUTE,
    DUPLICATE,
    END,
    GAS,
    HALT,
    JUMP,
    JUMP_IF,
    NOTHING,
    OPERATE,
    POP,
    PUSH,
    READ,
    SWAP,
)
from evm.opcodes import OPCODES, STACK_LIMIT

if TYPE_CHECKING:
    from evm.frame import Frame


@lru_cache(maxsize=128)
def pushed_values(code: bytes) -> dict[int, int]:
    """Return a cache of the values that code pushes: position → value.

    All executions of the code share it. It may reach some megabytes for one contract.
    """
    return {}


def pushed_value(code: bytes, position: int, size: int) -> int:
    """Return the value of the PUSH at a position. size: its number of bytes.

    Bytes beyond the end of the code are zero.
    """
    start = position + 1
    data = code[start : start + size]
    return int.from_bytes(data, "big") << 8 * (size - len(data))


def stack_error(number: int, size: int) -> FrameError | None:
    """Return the error of an opcode on a stack of this size, None if it can be executed."""
    opcode = OPCODES[number]
    if size < opcode.taken:
        return StackUnderflow(size, opcode.taken)
    if size > opcode.stack_maximum:
        return StackOverflow(size, opcode.stack_maximum)
    return None


def run(frame: Frame) -> None:
    """Execute a frame's code from its program counter on, until it halts.

    The loop is one long function, because a call per instruction would double its time.
    The remaining gas and the program counter are local variables. They are written back
    before any code that may read them.

    Raises: FrameError if the code fails. The program counter is that of the failed
        instruction, and its operands are still on the stack.
    """
    code, values, entries = frame.code, frame.stack, frame.state.entries
    pushed = pushed_values(code)
    position, gas_left = frame.pc, frame.gas_remaining
    push, pop = values.append, values.pop
    try:
        while True:
            try:
                kind, gas, argument = entries[code[position]]
            except IndexError:
                kind, gas, argument = entries[STOP]
            gas_left -= gas
            if gas_left < 0:
                # The stack is checked before the gas, which only the text shows.
                raise stack_error(code[position], len(values)) or OutOfGas
            if kind <= SWAP:
                if kind == PUSH:
                    if len(values) >= STACK_LIMIT:
                        raise StackOverflow(STACK_LIMIT, STACK_LIMIT - 1)
                    value = pushed.get(position)
                    if value is None:
                        value = pushed[position] = pushed_value(
                            code, position, argument
                        )
                    push(value)
                    position += argument
                elif kind == DUPLICATE:
                    if len(values) >= STACK_LIMIT:
                        raise StackOverflow(STACK_LIMIT, STACK_LIMIT - 1)
                    if argument > len(values):
                        raise StackUnderflow(len(values), argument)
                    push(values[-argument])
                elif kind == COMPUTE:
                    try:
                        argument(values)
                    except IndexError:
                        taken = OPCODES[code[position]].taken
                        raise StackUnderflow(len(values), taken) from None
                else:
                    if argument >= len(values):
                        raise StackUnderflow(len(values), argument + 1)
                    deeper = values[-1 - argument]
                    values[-1 - argument] = values[-1]
                    values[-1] = deeper
            elif kind >= OPERATE:
                frame.gas_remaining = gas_left
                frame.pc = position
                argument(frame)
                if kind == END:
                    return
                gas_left = frame.gas_remaining
                position = frame.pc
                continue
            elif kind == POP:
                if not values:
                    raise StackUnderflow(0, 1)
                pop()
            elif kind == JUMP_IF:
                if len(values) < 2:
                    raise StackUnderflow(len(values), 2)
                if values[-2]:
                    check_jump(code, values[-1])
                    position = pop()
                    pop()
                    continue
                del values[-2:]
            elif kind == NOTHING:
                pass
            elif kind == JUMP:
                if not values:
                    raise StackUnderflow(0, 1)
                check_jump(code, values[-1])
                position = pop()
                continue
            elif kind == READ:
                if len(values) >= STACK_LIMIT:
                    raise StackOverflow(STACK_LIMIT, STACK_LIMIT - 1)
                push(argument(frame))
            elif kind == GAS:
                if len(values) >= STACK_LIMIT:
                    raise StackOverflow(STACK_LIMIT, STACK_LIMIT - 1)
                push(gas_left)
            elif kind == HALT:
                frame.gas_remaining = gas_left
                return
            position += 1
    except FrameError:
        # Tracers read the program counter of the failed instruction. The `try` costs
        # nothing while there is no error.
        frame.pc = position
        raise
