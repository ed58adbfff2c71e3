"""The instructions: one function for each, in the order stack, gas, operation, counter.

The loop (`evm.interpreter`) charges an instruction's constant price. Its function checks
the operands, charges the rest, changes the frame and moves the program counter. A price
that depends on operands or state is computed by a function of its own, because tracers
report it before the instruction is executed.

A function that fails leaves the operands on the stack, and nothing else is changed that a
failing frame does not undo.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import TYPE_CHECKING

from evm.instructions import (
    accounts,
    arithmetic,
    calls,
    control,
    creations,
    endings,
    memory,
    readings,
    storage,
)
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
    Instruction,
)
from evm.opcodes import OPCODES

if TYPE_CHECKING:
    from evm.context import Entry
    from evm.rules.fork import Fork

_COMPUTED = {
    **{"ADD": arithmetic.add, "MUL": arithmetic.mul, "SUB": arithmetic.sub},
    **{"DIV": arithmetic.div, "SDIV": arithmetic.sdiv, "MOD": arithmetic.mod},
    **{"SMOD": arithmetic.smod, "ADDMOD": arithmetic.addmod},
    **{"MULMOD": arithmetic.mulmod, "SIGNEXTEND": arithmetic.signextend},
    **{"LT": arithmetic.lt, "GT": arithmetic.gt, "SLT": arithmetic.slt},
    **{"SGT": arithmetic.sgt, "EQ": arithmetic.eq, "ISZERO": arithmetic.iszero},
    **{"AND": arithmetic.and_, "OR": arithmetic.or_, "XOR": arithmetic.xor},
    **{"NOT": arithmetic.not_, "BYTE": arithmetic.byte, "SHL": arithmetic.shl},
    **{"SHR": arithmetic.shr, "SAR": arithmetic.sar, "CLZ": arithmetic.clz},
}
_READ = {
    **{"ADDRESS": readings.address, "ORIGIN": readings.origin},
    **{"CALLER": readings.caller, "CALLVALUE": readings.callvalue},
    **{"CALLDATASIZE": readings.calldatasize, "CODESIZE": readings.codesize},
    **{"GASPRICE": readings.gasprice, "RETURNDATASIZE": readings.returndatasize},
    **{"COINBASE": readings.coinbase, "TIMESTAMP": readings.timestamp},
    **{"NUMBER": readings.number, "DIFFICULTY": readings.difficulty},
    **{"GASLIMIT": readings.gaslimit, "CHAINID": readings.chainid},
    **{"SELFBALANCE": readings.selfbalance, "BASEFEE": readings.basefee},
    **{"BLOBBASEFEE": readings.blobbasefee, "MSIZE": readings.msize},
    "SLOTNUM": readings.slotnum,
}
INSTRUCTIONS: dict[str, Instruction] = {
    **{name: Instruction(COMPUTE, function) for name, function in _COMPUTED.items()},
    **{name: Instruction(READ, function) for name, function in _READ.items()},
    **{f"PUSH{size}": Instruction(PUSH, size) for size in range(33)},
    **{f"DUP{depth}": Instruction(DUPLICATE, depth) for depth in range(1, 17)},
    **{f"SWAP{depth}": Instruction(SWAP, depth) for depth in range(1, 17)},
    "STOP": Instruction(HALT, control.stop),
    "POP": Instruction(POP, control.pop),
    "JUMP": Instruction(JUMP, control.jump),
    "JUMPI": Instruction(JUMP_IF, control.jumpi),
    "JUMPDEST": Instruction(NOTHING, control.jumpdest),
    "PC": Instruction(OPERATE, control.pc),
    "GAS": Instruction(GAS, control.gas),
    "DUPN": Instruction(OPERATE, control.dupn),
    "SWAPN": Instruction(OPERATE, control.swapn),
    "EXCHANGE": Instruction(OPERATE, control.exchange),
    "EXP": Instruction(OPERATE, arithmetic.exp, arithmetic.exp_cost),
    "KECCAK256": Instruction(OPERATE, memory.keccak256, memory.keccak_cost),
    "BALANCE": Instruction(OPERATE, accounts.balance, accounts.access_cost),
    "EXTCODESIZE": Instruction(
        OPERATE, accounts.extcodesize, accounts.code_access_cost
    ),
    "EXTCODEHASH": Instruction(OPERATE, accounts.extcodehash, accounts.access_cost),
    "EXTCODECOPY": Instruction(
        OPERATE, accounts.extcodecopy, accounts.extcodecopy_cost
    ),
    "BLOCKHASH": Instruction(OPERATE, accounts.blockhash),
    "BLOBHASH": Instruction(OPERATE, accounts.blobhash),
    "CALLDATALOAD": Instruction(OPERATE, memory.calldataload),
    "CALLDATACOPY": Instruction(OPERATE, memory.calldatacopy, memory.copy_cost),
    "CODECOPY": Instruction(OPERATE, memory.codecopy, memory.copy_cost),
    "RETURNDATACOPY": Instruction(OPERATE, memory.returndatacopy, memory.copy_cost),
    "MCOPY": Instruction(OPERATE, memory.mcopy, memory.mcopy_cost),
    "MLOAD": Instruction(OPERATE, memory.mload, memory.word_cost),
    "MSTORE": Instruction(OPERATE, memory.mstore, memory.word_cost),
    "MSTORE8": Instruction(OPERATE, memory.mstore8, memory.byte_cost),
    "SLOAD": Instruction(OPERATE, storage.sload, storage.sload_cost),
    "SSTORE": Instruction(
        OPERATE,
        storage.sstore,
        storage.sstore_cost,
        storage.sstore_refund,
        storage.sstore_state_cost,
    ),
    "TLOAD": Instruction(OPERATE, storage.tload),
    "TSTORE": Instruction(OPERATE, storage.tstore),
    **{
        f"LOG{topics}": Instruction(
            OPERATE,
            partial(memory.log, topics=topics),
            partial(memory.log_cost, topics=topics),
        )
        for topics in range(5)
    },
    "CREATE": Instruction(OPERATE, creations.create, creations.create_cost),
    "CREATE2": Instruction(OPERATE, creations.create2, creations.create2_cost),
    "CALL": Instruction(OPERATE, calls.call, calls.call_cost),
    "CALLCODE": Instruction(OPERATE, calls.callcode, calls.callcode_cost),
    "DELEGATECALL": Instruction(OPERATE, calls.delegatecall, calls.plain_call_cost),
    "STATICCALL": Instruction(OPERATE, calls.staticcall, calls.plain_call_cost),
    "RETURN": Instruction(END, endings.return_, endings.output_cost),
    "REVERT": Instruction(END, endings.revert, endings.output_cost),
    "SELFDESTRUCT": Instruction(
        END,
        endings.selfdestruct,
        endings.selfdestruct_cost,
        endings.selfdestruct_refund,
        endings.selfdestruct_state_cost,
    ),
}
"""By name. PREVRANDAO has its old name."""

INVALID = Instruction(OPERATE, endings.invalid)
"""What a byte of code is that is no instruction of the fork."""


@lru_cache
def instructions_of(fork: Fork) -> tuple[Instruction, ...]:
    """Return the instruction of each of the 256 opcodes."""
    return tuple(
        INSTRUCTIONS[opcode.name] if opcode.name in fork.opcodes else INVALID
        for opcode in OPCODES
    )


@lru_cache
def entries_of(fork: Fork) -> tuple[Entry, ...]:
    """Return the 256 opcodes of a fork as the interpreter's loop reads them."""
    constant = fork.prices.constant
    return tuple(
        (one.kind, 0 if one is INVALID else constant[number], one.argument)
        for number, one in enumerate(instructions_of(fork))
    )
