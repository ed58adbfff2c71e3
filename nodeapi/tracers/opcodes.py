"""Opcodes as geth names them in traces, and how much of the stack they need.

Source: go-ethereum, core/vm/opcodes.go and jump_table.go
"""

from __future__ import annotations

_NAMED = """
00 STOP ADD MUL SUB DIV SDIV MOD SMOD ADDMOD MULMOD EXP SIGNEXTEND
10 LT GT SLT SGT EQ ISZERO AND OR XOR NOT BYTE SHL SHR SAR CLZ
20 KECCAK256
30 ADDRESS BALANCE ORIGIN CALLER CALLVALUE CALLDATALOAD CALLDATASIZE CALLDATACOPY
38 CODESIZE CODECOPY GASPRICE EXTCODESIZE EXTCODECOPY RETURNDATASIZE RETURNDATACOPY
3F EXTCODEHASH
40 BLOCKHASH COINBASE TIMESTAMP NUMBER DIFFICULTY GASLIMIT CHAINID SELFBALANCE BASEFEE
49 BLOBHASH BLOBBASEFEE
50 POP MLOAD MSTORE MSTORE8 SLOAD SSTORE JUMP JUMPI PC MSIZE GAS JUMPDEST TLOAD TSTORE
5E MCOPY PUSH0
F0 CREATE CALL CALLCODE RETURN DELEGATECALL CREATE2
FA STATICCALL
FD REVERT INVALID SELFDESTRUCT
"""
"""Each line: the first opcode's number, then the names from there on."""


def _names() -> tuple[str, ...]:
    names = [f"opcode {number:#x} not defined" for number in range(256)]
    for line in _NAMED.split("\n")[1:-1]:
        start, *words = line.split()
        for number, word in enumerate(words, int(start, 16)):
            names[number] = word
    for first, word, low, count in (
        (0x60, "PUSH", 1, 32),
        (0x80, "DUP", 1, 16),
        (0x90, "SWAP", 1, 16),
        (0xA0, "LOG", 0, 5),
    ):
        for number in range(count):
            names[first + number] = f"{word}{low + number}"
    return tuple(names)


OPCODE_NAMES: tuple[str, ...] = _names()
"""By opcode. A name is the same in every fork, even where it is not valid yet;
PREVRANDAO goes by its old name."""
