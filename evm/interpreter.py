"""The interpreter loop, which executes code instruction by instruction.

py-evm's opcodes define each instruction. The most frequent instructions (push,
duplicate, swap, jump, arithmetic) are executed here without a call. They are recognized
by the opcodes' logic functions, so an opcode that was wrapped or replaced is called.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from eth.exceptions import (
    FullStack,
    Halt,
    InsufficientStack,
    InvalidInstruction,
    InvalidJumpDestination,
    VMError,
)
from eth.vm.logic import block, context, duplication, flow, memory, stack, swap
from eth.vm.logic.invalid import InvalidOpcode
from eth.vm.opcode import _FastOpcode

from evm.arithmetic import ARITHMETIC
from evm.code import JUMPDEST, PUSH1, STOP, jump_destinations
from evm.frame_errors import OutOfConstantGas
from evm.instructions import ENDINGS, FRAME_OPERATIONS
from evm.stack_limit import STACK_LIMIT

READINGS: dict[Any, Callable[[Any], int]] = {
    context.address: lambda frame: int.from_bytes(frame.msg.storage_address, "big"),
    context.origin: lambda frame: int.from_bytes(
        frame.transaction_context.origin, "big"
    ),
    context.caller: lambda frame: int.from_bytes(frame.msg.sender, "big"),
    context.callvalue: lambda frame: frame.msg.value,
    context.calldatasize: lambda frame: len(frame.msg.data),
    context.codesize: lambda frame: len(frame.code.raw),
    context.gasprice: lambda frame: frame.transaction_context.gas_price,
    context.returndatasize: lambda frame: len(frame.return_data),
    context.chain_id: lambda frame: frame.state.execution_context.chain_id,
    context.selfbalance: lambda frame: frame.state.get_balance(
        frame.msg.storage_address
    ),
    block.coinbase: lambda frame: int.from_bytes(
        frame.state.execution_context.coinbase, "big"
    ),
    block.timestamp: lambda frame: frame.state.execution_context.timestamp,
    block.number: lambda frame: frame.state.execution_context.block_number,
    block.difficulty: lambda frame: frame.state.execution_context.difficulty,
    block.mixhash: lambda frame: int.from_bytes(
        frame.state.execution_context.mix_hash, "big"
    ),
    block.gaslimit: lambda frame: frame.state.execution_context.gas_limit,
    block.basefee: lambda frame: frame.state.execution_context.base_fee_per_gas,
    block.blob_base_fee: lambda frame: frame.state.blob_base_fee,
    memory.msize: lambda frame: len(frame.memory),
}


# Kinds of instructions. The loop first asks whether a kind is one of the first four, then
# whether it is one of the last three, which get the whole frame.
PUSH, DUPLICATE, COMPUTE, SWAP = range(4)
POP, JUMP_IF, NOTHING, JUMP, READ, GAS, HALT = range(4, 11)
OPERATE, CALL, END = range(11, 14)
"""Kinds of instructions: a function of the frame; a py-evm opcode; a function that ends
the frame. The first two may also end the frame by raising Halt."""

Entry = tuple[int, int, Any]
"""Kind of an opcode, its constant gas, and a value that depends on the kind."""


class OpcodeTable(NamedTuple):
    """The 256 opcodes of a Computation class, prepared for the loop."""

    entries: tuple[Entry, ...]


def _entry(number: int, opcode: Any) -> Entry:
    """Return the entry by which the loop executes an opcode."""
    if type(opcode) is not _FastOpcode:
        return CALL, 0, opcode
    logic, gas = opcode.logic_fn, opcode.gas_cost
    if logic in ARITHMETIC:
        return COMPUTE, gas, ARITHMETIC[logic]
    if logic in READINGS:
        return READ, gas, READINGS[logic]
    if logic in FRAME_OPERATIONS:
        return OPERATE, gas, FRAME_OPERATIONS[logic]
    if logic in ENDINGS:
        return END, gas, ENDINGS[logic]
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
        flow.gas: GAS,
        flow.stop: HALT,
    }
    return simple.get(logic, OPERATE), gas, logic


def make_opcode_table(opcodes: dict[int, Any]) -> OpcodeTable:
    """Prepare a Computation class's opcodes for `run`."""
    entries = tuple(
        _entry(number, opcodes.get(number) or InvalidOpcode(number))
        for number in range(256)
    )

    return OpcodeTable(entries)


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


def _check_jump(code: bytes, destination: int) -> None:
    """Raise py-evm's error if the destination is not a JUMPDEST."""
    if destination >= len(code) or code[destination] != JUMPDEST:
        raise InvalidJumpDestination("Invalid Jump Destination")
    if destination not in jump_destinations(code):
        raise InvalidInstruction("Jump resulted in invalid instruction")


def run(computation: Any, table: OpcodeTable) -> None:
    """Execute a frame's code until it halts.

    The loop is one long function, because a call per instruction would double its time.
    The remaining gas and the program counter are local variables. They are written back
    before any code that may read them.

    Raises: VMError if the code fails. The program counter is that of the failed
        instruction.
    """
    stream, values = computation.code, computation.stack
    code, entries = stream.raw, table.entries
    pushed = pushed_values(code)
    position, gas_left = stream.program_counter, computation.gas_remaining
    push, pop = values.append, values.pop
    try:
        while True:
            try:
                kind, gas, argument = entries[code[position]]
            except IndexError:
                kind, gas, argument = entries[STOP]
            gas_left -= gas
            if gas_left < 0:
                raise OutOfConstantGas(gas_left + gas)
            if kind <= SWAP:
                if kind == PUSH:
                    if len(values) >= STACK_LIMIT:
                        raise FullStack("Stack limit reached")
                    value = pushed.get(position)
                    if value is None:
                        value = pushed[position] = pushed_value(
                            code, position, argument
                        )
                    push(value)
                    position += argument
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
                else:
                    if argument >= len(values):
                        raise InsufficientStack(
                            f"Insufficient stack items for SWAP{argument}"
                        )
                    deeper = values[-1 - argument]
                    values[-1 - argument] = values[-1]
                    values[-1] = deeper
            elif kind >= OPERATE:
                computation.gas_remaining = gas_left
                stream.program_counter = position + 1
                try:
                    if kind == OPERATE:
                        argument(computation)
                    elif kind == CALL:
                        argument(computation=computation)
                    else:
                        argument(computation)
                        return
                except Halt:
                    return
                gas_left = computation.gas_remaining
                position = stream.program_counter
                continue
            elif kind == POP:
                if not values:
                    raise InsufficientStack("Wanted 1 stack item, had none")
                pop()
            elif kind == JUMP_IF:
                if len(values) < 2:
                    raise InsufficientStack("Insufficient stack items for JUMPI")
                destination = pop()
                if pop():
                    _check_jump(code, destination)
                    position = destination
                    continue
            elif kind == NOTHING:
                pass
            elif kind == JUMP:
                if not values:
                    raise InsufficientStack("Wanted 1 stack item, had none")
                destination = pop()
                _check_jump(code, destination)
                position = destination
                continue
            elif kind == READ:
                if len(values) >= STACK_LIMIT:
                    raise FullStack("Stack limit reached")
                push(argument(computation))
            elif kind == GAS:
                if len(values) >= STACK_LIMIT:
                    raise FullStack("Stack limit reached")
                push(gas_left)
            elif kind == HALT:
                computation.gas_remaining = gas_left
                return
            position += 1
    except VMError:
        # Tracers read the program counter of the failed instruction. The `try` costs
        # nothing while there is no error.
        stream.program_counter = position
        raise
