"""The loop that runs code, instruction by instruction.

py-evm's opcodes stay the authority on what each instruction does. What most programs
mostly do (push, duplicate, swap, jump, compute) is done here without a call to
them: `nodeapi.evm.instructions` names the opcodes for which that is so. An opcode
that someone wrapped or replaced is called as it is.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from eth.exceptions import (
    FullStack,
    Halt,
    InsufficientStack,
    InvalidInstruction,
    InvalidJumpDestination,
    OutOfGas,
    VMError,
)
from eth.vm.logic import duplication, flow, stack, swap
from eth.vm.logic.invalid import InvalidOpcode
from eth.vm.opcode import _FastOpcode

from nodeapi.evm.code import JUMPDEST, PUSH1, STOP, jump_destinations
from nodeapi.evm.instructions import ARITHMETIC, FRAME_OPERATIONS
from nodeapi.evm.stack import STACK_LIMIT

# Kinds of instructions, in the order in which the loop tries them.
PUSH, DUPLICATE, COMPUTE, SWAP, JUMP_IF, POP, NOTHING, JUMP, OPERATE, CALL = range(10)

Instruction = tuple[int, int, Any, int]
"""Kind, gas, what the kind needs, and the position of the next instruction."""


class OutOfConstantGas(OutOfGas):  # type: ignore[misc]  # py-evm has no types
    """Raised when there is not even the gas that an instruction always takes.

    Nothing of it has been done then, and its operands still lie on the stack.
    """

    def __init__(self, gas: int) -> None:
        """Take what there is."""
        self.gas = gas
        super().__init__(gas)


class OpcodeTable(NamedTuple):
    """What the 256 opcodes of a Computation class mean to the loop."""

    entries: tuple[tuple[int, int, Any], ...]
    """Kind, gas, argument."""
    decode: Any
    """code → {position: Instruction}, shared by all runs of that code."""


def _entry(number: int, opcode: Any) -> tuple[int, int, Any]:
    """Return how the loop runs an opcode."""
    if type(opcode) is not _FastOpcode:
        return CALL, 0, opcode
    logic, gas = opcode.logic_fn, opcode.gas_cost
    if logic in ARITHMETIC:
        return COMPUTE, gas, ARITHMETIC[logic]
    if logic in FRAME_OPERATIONS:
        return OPERATE, gas, FRAME_OPERATIONS[logic]
    if PUSH1 - 1 <= number <= 0x7F and logic is getattr(stack, f"push{number - 0x5F}"):
        return PUSH, gas, number - 0x5F
    if 0x80 <= number <= 0x8F and logic is getattr(duplication, f"dup{number - 0x7F}"):
        return DUPLICATE, gas, number - 0x7F
    if 0x90 <= number <= 0x9F and logic is getattr(swap, f"swap{number - 0x8F}"):
        return SWAP, gas, number - 0x8F
    simple = {
        stack.pop: POP,
        flow.jump: JUMP,
        flow.jumpi: JUMP_IF,
        flow.jumpdest: NOTHING,
    }
    return simple.get(logic, OPERATE), gas, logic


def make_opcode_table(opcodes: dict[int, Any]) -> OpcodeTable:
    """Prepare a Computation class's opcodes for `run`."""
    entries = tuple(
        _entry(number, opcodes.get(number) or InvalidOpcode(number))
        for number in range(256)
    )

    @lru_cache(maxsize=256)
    def decoded(code: bytes) -> dict[int, Instruction]:
        return {}

    return OpcodeTable(entries, decoded)


def instruction_at(table: OpcodeTable, code: bytes, position: int) -> Instruction:
    """Return the instruction at a position; beyond the end, a STOP that stays there."""
    if position >= len(code):
        kind, gas, argument = table.entries[STOP]
        return kind, gas, argument, position
    kind, gas, argument = table.entries[code[position]]
    following = position + 1
    if kind == PUSH:
        size = argument
        data = code[following : following + size].ljust(size, b"\x00")
        return kind, gas, int.from_bytes(data, "big"), following + size
    return kind, gas, argument, following


def _check_jump(code: bytes, destination: int) -> None:
    """Raise the error that py-evm has for a jump to anything but a JUMPDEST."""
    if destination >= len(code) or code[destination] != JUMPDEST:
        raise InvalidJumpDestination("Invalid Jump Destination")
    if destination not in jump_destinations(code):
        raise InvalidInstruction("Jump resulted in invalid instruction")


def run(computation: Any, table: OpcodeTable) -> None:
    """Run a frame's code until it halts.

    It is one long function because a call per instruction would double its time.
    The gas meter and the program counter are kept in local variables, and are written
    back before anything that may read them.

    Raises: VMError as the code fails; the program counter stands at what failed.
    """
    stream, meter = computation.code, computation._gas_meter
    values = computation._stack.values
    code = stream.raw
    program = table.decode(code)
    position, gas_left = stream.program_counter, meter.gas_remaining
    push, pop = values.append, values.pop
    try:
        while True:
            try:
                kind, gas, argument, following = program[position]
            except KeyError:
                program[position] = instruction_at(table, code, position)
                continue
            gas_left -= gas
            if gas_left < 0:
                raise OutOfConstantGas(gas_left + gas)
            if kind == PUSH:
                if len(values) >= STACK_LIMIT:
                    raise FullStack("Stack limit reached")
                push(argument)
            elif kind == DUPLICATE:
                if len(values) >= STACK_LIMIT:
                    raise FullStack("Stack limit reached")
                if argument > len(values):
                    raise InsufficientStack(
                        f"Insufficient stack items for DUP{argument}"
                    )
                push(values[-argument])
            elif kind == COMPUTE:
                try:
                    argument(values)
                except IndexError:
                    raise InsufficientStack("Insufficient stack items") from None
            elif kind == SWAP:
                if argument >= len(values):
                    raise InsufficientStack(
                        f"Insufficient stack items for SWAP{argument}"
                    )
                values[-1], values[-1 - argument] = values[-1 - argument], values[-1]
            elif kind == JUMP_IF:
                if len(values) < 2:
                    raise InsufficientStack("Insufficient stack items for JUMPI")
                destination = pop()
                if pop():
                    _check_jump(code, destination)
                    following = destination
            elif kind == POP:
                if not values:
                    raise InsufficientStack("Wanted 1 stack item, had none")
                pop()
            elif kind == JUMP:
                if not values:
                    raise InsufficientStack("Wanted 1 stack item, had none")
                following = pop()
                _check_jump(code, following)
            elif kind != NOTHING:
                meter.gas_remaining = gas_left
                stream.program_counter = following
                try:
                    if kind == OPERATE:
                        argument(computation)
                    else:
                        argument(computation=computation)
                except Halt:
                    return
                gas_left = meter.gas_remaining
                following = stream.program_counter
            position = following
    except VMError:
        # For whoever wants to know what failed; a `try` costs nothing until then.
        stream.program_counter = position
        raise
