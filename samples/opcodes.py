"""The mnemonics of the EVM's opcodes, Frontier through Osaka.

Source: https://ethereum.github.io/execution-specs/ and the EIPs that added to it.
"""

from __future__ import annotations

_ROWS = {
    0x00: "STOP ADD MUL SUB DIV SDIV MOD SMOD ADDMOD MULMOD EXP SIGNEXTEND",
    0x10: "LT GT SLT SGT EQ ISZERO AND OR XOR NOT BYTE SHL SHR SAR CLZ",
    0x20: "SHA3",
    0x30: "ADDRESS BALANCE ORIGIN CALLER CALLVALUE CALLDATALOAD CALLDATASIZE "
    "CALLDATACOPY CODESIZE CODECOPY GASPRICE EXTCODESIZE EXTCODECOPY "
    "RETURNDATASIZE RETURNDATACOPY EXTCODEHASH",
    0x40: "BLOCKHASH COINBASE TIMESTAMP NUMBER PREVRANDAO GASLIMIT CHAINID "
    "SELFBALANCE BASEFEE BLOBHASH BLOBBASEFEE",
    0x50: "POP MLOAD MSTORE MSTORE8 SLOAD SSTORE JUMP JUMPI PC MSIZE GAS JUMPDEST "
    "TLOAD TSTORE MCOPY PUSH0",
    0x60: " ".join(f"PUSH{size}" for size in range(1, 33)),
    0x80: " ".join(f"DUP{depth}" for depth in range(1, 17)),
    0x90: " ".join(f"SWAP{depth}" for depth in range(1, 17)),
    0xA0: " ".join(f"LOG{topics}" for topics in range(5)),
    0xF0: "CREATE CALL CALLCODE RETURN DELEGATECALL CREATE2",
    0xFA: "STATICCALL",
    0xFD: "REVERT INVALID SELFDESTRUCT",
}

OPCODES: dict[str, int] = {
    mnemonic: first + offset
    for first, row in _ROWS.items()
    for offset, mnemonic in enumerate(row.split())
}
"""Mnemonic → opcode."""
OPCODES["DIFFICULTY"] = OPCODES["PREVRANDAO"]  # its name before the merge
