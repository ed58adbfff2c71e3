"""All opcodes: name, stack items popped and pushed, and price when introduced.

Source: go-ethereum, core/vm/opcodes.go and jump_table.go
"""

from __future__ import annotations

from typing import NamedTuple

STACK_LIMIT = 1024
"""Words on the stack. Source: Yellow Paper, 9.1."""
MAX_DEPTH = 1024
"""Depth of the deepest call frame. The outermost one has 0."""

_TABLE = """
00 STOP,0,0,0 ADD,2,1,3 MUL,2,1,5 SUB,2,1,3 DIV,2,1,5 SDIV,2,1,5 MOD,2,1,5 SMOD,2,1,5
08 ADDMOD,3,1,8 MULMOD,3,1,8 EXP,2,1,0 SIGNEXTEND,2,1,5
10 LT,2,1,3 GT,2,1,3 SLT,2,1,3 SGT,2,1,3 EQ,2,1,3 ISZERO,1,1,3 AND,2,1,3 OR,2,1,3
18 XOR,2,1,3 NOT,1,1,3 BYTE,2,1,3 SHL,2,1,3 SHR,2,1,3 SAR,2,1,3 CLZ,1,1,5
20 KECCAK256,2,1,30
30 ADDRESS,0,1,2 BALANCE,1,1,20 ORIGIN,0,1,2 CALLER,0,1,2 CALLVALUE,0,1,2
35 CALLDATALOAD,1,1,3 CALLDATASIZE,0,1,2 CALLDATACOPY,3,0,3 CODESIZE,0,1,2
39 CODECOPY,3,0,3 GASPRICE,0,1,2 EXTCODESIZE,1,1,20 EXTCODECOPY,4,0,20
3d RETURNDATASIZE,0,1,2 RETURNDATACOPY,3,0,3 EXTCODEHASH,1,1,400
40 BLOCKHASH,1,1,20 COINBASE,0,1,2 TIMESTAMP,0,1,2 NUMBER,0,1,2 DIFFICULTY,0,1,2
45 GASLIMIT,0,1,2 CHAINID,0,1,2 SELFBALANCE,0,1,5 BASEFEE,0,1,2 BLOBHASH,1,1,3
4a BLOBBASEFEE,0,1,2
50 POP,1,0,2 MLOAD,1,1,3 MSTORE,2,0,3 MSTORE8,2,0,3 SLOAD,1,1,50 SSTORE,2,0,0
56 JUMP,1,0,8 JUMPI,2,0,10 PC,0,1,2 MSIZE,0,1,2 GAS,0,1,2 JUMPDEST,0,0,1 TLOAD,1,1,100
5d TSTORE,2,0,100 MCOPY,3,0,3 PUSH0,0,1,2
a0 LOG0,2,0,0 LOG1,3,0,0 LOG2,4,0,0 LOG3,5,0,0 LOG4,6,0,0
f0 CREATE,3,1,32000 CALL,7,1,40 CALLCODE,7,1,40 RETURN,2,0,0 DELEGATECALL,6,1,40
f5 CREATE2,4,1,32000
fa STATICCALL,6,1,700
fd REVERT,2,0,0 INVALID,0,0,0 SELFDESTRUCT,1,0,0
4b SLOTNUM,0,1,2
d0 DATALOAD,0,0,0 DATALOADN,0,0,0 DATASIZE,0,0,0 DATACOPY,0,0,0
e0 RJUMP,0,0,0 RJUMPI,0,0,0 RJUMPV,0,0,0 CALLF,0,0,0 RETF,0,0,0 JUMPF,0,0,0
e6 DUPN,1,2,3 SWAPN,2,2,3 EXCHANGE,2,2,3
ec EOFCREATE,0,0,0
ee RETURNCONTRACT,0,0,0
f7 RETURNDATALOAD,0,0,0 EXTCALL,0,0,0 EXTDELEGATECALL,0,0,0
fb EXTSTATICCALL,0,0,0
"""
"""Each line: the first opcode's number, then consecutive opcodes: name, popped, pushed,
gas. The gas is the constant price in the fork that introduced the opcode, which is charged
before the rest. `evm.rules.prices` has the other prices. DUPN, SWAPN and EXCHANGE need
more items, depending on the byte after them. The opcodes after them, and DATALOAD to JUMPF,
are valid in no fork here, but geth names them in errors and traces."""


class Opcode(NamedTuple):
    """The properties of an opcode that are the same in all forks."""

    name: str
    taken: int = 0
    """Stack items that the opcode pops."""
    put: int = 0
    """Stack items that the opcode pushes."""
    gas: int = 0
    """Constant price in the fork that introduced the opcode."""

    @property
    def stack_maximum(self) -> int:
        """Largest stack size before the opcode."""
        return STACK_LIMIT + self.taken - self.put


def _opcodes() -> tuple[Opcode, ...]:
    opcodes = [Opcode(f"opcode {number:#x} not defined") for number in range(256)]
    for line in _TABLE.split("\n")[1:-1]:
        start, *entries = line.split()
        for number, entry in enumerate(entries, int(start, 16)):
            name, *numbers = entry.split(",")
            opcodes[number] = Opcode(name, *map(int, numbers))
    for count in range(1, 33):
        opcodes[0x5F + count] = Opcode(f"PUSH{count}", 0, 1, 3)
    for count in range(1, 17):
        opcodes[0x7F + count] = Opcode(f"DUP{count}", count, count + 1, 3)
        opcodes[0x8F + count] = Opcode(f"SWAP{count}", count + 1, count + 1, 3)
    return tuple(opcodes)


OPCODES: tuple[Opcode, ...] = _opcodes()

OPCODE_NAMES: tuple[str, ...] = tuple(opcode.name for opcode in OPCODES)
"""Names by opcode, the same in all forks, even where the opcode is not valid yet.
PREVRANDAO has its old name."""

NUMBERS: dict[str, int] = {name: number for number, name in enumerate(OPCODE_NAMES)}
