"""Programs for each class of opcodes, several where the worst one is not obvious."""

from __future__ import annotations

from typing import Any

from bench.worst_loads import STACK, Load, load
from samples.assembler import assemble

SPREAD = 0x9E3779B97F4A7C15F39CC0605CEDC8341082276BF3A27251F86C6A11D0C18E95
"""An odd factor, so that its multiples modulo 2**256 are distinct and unordered."""
ADDRESS_MASK = 2**160 - 1
ACCOUNTS = 8_000
"""Number of existing accounts, and of slots: more than two transactions can read cold."""


def _account(number: int) -> dict[str, Any]:
    return {f"0x{number:040x}": {"balance": "0x1"}}


def _contract(number: int, source: str) -> dict[str, Any]:
    code = f"0x{assemble(source).hex()}"
    return {f"0x{number:040x}": {"balance": "0x0", "nonce": "0x1", "code": code}}


def loads(family: str, *rows: tuple[Any, ...]) -> tuple[Load, ...]:
    """Return a load for each row: name, opcodes, body, gas, and setup if there is one."""
    return tuple(
        load(family, name, opcodes, body, gas=gas, setup=" ".join(setup))
        for name, opcodes, body, gas, *setup in rows
    )


# Arithmetic: the operands are copied from the stack

_LONG = f"0x{SPREAD:x}"
_NEGATIVE = f"0x{2**256 - SPREAD // 3:x}"

ARITHMETIC = (
    *loads(
        "arithmetic",
        ("ADD, operands by DUP1", "ADD", "DUP1 ADD", 6, f"PUSH {_LONG}"),
        ("NOT", "NOT", "NOT", 3, "PUSH 7"),
        ("CLZ", "CLZ", "CLZ", 5, "PUSH 7"),
        (
            "EXP, 1-byte exponent",
            "EXP",
            "DUP2 DUP2 EXP POP",
            68,
            f"PUSH 0xff PUSH {_LONG}",
        ),
        (
            "EXP, 32-byte exponent",
            "EXP",
            "DUP2 DUP2 EXP POP",
            1618,
            f"PUSH 0x{2**256 - 1:x} PUSH {_LONG}",
        ),
    ),
    *(
        load(
            "arithmetic",
            name,
            name,
            f"DUP2 DUP2 {name} POP",
            setup=f"PUSH {first} PUSH {second}",
            gas=gas + 8,
        )
        for name, gas, first, second in (
            ("DIV", 5, f"0x{2**127 + 9:x}", _LONG),
            ("SDIV", 5, f"0x{2**127 + 9:x}", _NEGATIVE),
            ("SMOD", 5, f"0x{2**127 + 9:x}", _NEGATIVE),
            ("SIGNEXTEND", 5, "0x80ff", "1"),
            ("BYTE", 3, _LONG, "3"),
            ("SAR", 3, _NEGATIVE, "77"),
            ("SLT", 3, _LONG, _NEGATIVE),
        )
    ),
    *(
        load(
            "arithmetic",
            name,
            name,
            f"DUP3 DUP3 DUP3 {name} POP",
            setup=f"PUSH {_LONG} PUSH {_NEGATIVE} PUSH {_LONG}",
            gas=19,
        )
        for name in ("ADDMOD", "MULMOD")
    ),
)

# What a frame, a transaction and a block are like

CONTEXT = (
    *loads(
        "context",
        ("BLOCKHASH", "BLOCKHASH", "DUP1 BLOCKHASH POP", 25, "PUSH 0"),
        ("BLOBHASH", "BLOBHASH", "PUSH0 BLOBHASH POP", 7),
    ),
    *(
        load("context", name, name, f"{name} POP", gas=gas + 2)
        for name, gas in (
            *((name, 2) for name in ("ADDRESS", "ORIGIN", "CALLER", "CODESIZE")),
            *((name, 2) for name in ("GASPRICE", "COINBASE", "DIFFICULTY")),
            *((name, 2) for name in ("BLOBBASEFEE", "PC", "MSIZE", "GAS")),
            ("SELFBALANCE", 5),
        )
    ),
    load(
        "context",
        "CALLDATALOAD",
        "CALLDATALOAD",
        "PUSH0 CALLDATALOAD POP",
        gas=7,
        data=bytes(range(64)),
    ),
)

# Stack and jumps

STACK_LOADS = loads(
    "stack",
    ("PUSH0 and POP", "PUSH0 POP", "PUSH0 POP", 4),
    ("PUSH1 and POP", "PUSH1 POP", "PUSH1 7 POP", 5),
    ("PUSH32 and POP", "PUSH32 POP", f"PUSH32 {_LONG} POP", 5),
    ("DUP1 and POP", "DUP1 POP", "DUP1 POP", 5, "PUSH 1"),
    ("SWAP16", "SWAP16", "SWAP16", 3, "PUSH 1 " * 17),
)
JUMPS = loads(
    "jumps",
    ("JUMPDEST", "JUMPDEST", "here{0}:", 1),
    ("JUMP", "JUMP JUMPDEST", "PUSH @here{0} JUMP here{0}:", 12),
    ("JUMPI, taken", "JUMPI JUMPDEST", "PUSH 1 PUSH @here{0} JUMPI here{0}:", 17),
    ("JUMPI, not taken", "JUMPI", "PUSH0 PUSH0 JUMPI", 14),
)

# Memory, hashes, copies

MEMORY = loads(
    "memory",
    ("MLOAD", "MLOAD", "MLOAD", 3, "PUSH0"),
    ("MSTORE", "MSTORE", "PUSH0 PUSH0 MSTORE", 7),
    ("MSTORE8", "MSTORE8", "PUSH0 PUSH0 MSTORE8", 7),
    (
        "MCOPY, 32 bytes",
        "MCOPY",
        "PUSH 32 PUSH0 PUSH 32 MCOPY",
        15,
        "PUSH 1 PUSH 32 MSTORE",
    ),
    (
        "MCOPY, 64 KiB",
        "MCOPY",
        "DUP1 PUSH0 DUP2 MCOPY",
        6160,
        "PUSH 0 PUSH 131040 MSTORE PUSH 65536",
    ),
)
KECCAK = loads(
    "keccak",
    ("32 bytes", "KECCAK256", "PUSH 32 PUSH0 SHA3 POP", 43, "PUSH 1 PUSH 0 MSTORE"),
    ("136 bytes", "KECCAK256", "PUSH 136 PUSH0 SHA3 POP", 67, "PUSH 1 PUSH 128 MSTORE"),
    (
        "64 KiB",
        "KECCAK256",
        "PUSH 65536 PUSH0 SHA3 POP",
        12_340,
        "PUSH 0 PUSH 65504 MSTORE",
    ),
)
_ECHO = 0xEC40
_ECHO_SOURCE = "PUSH 65536 PUSH0 RETURN"


def _copies(name: str, size: int) -> Load:
    """Return a load that copies into memory from somewhere."""
    count = f"{size:,} bytes" if size else "nothing"
    words = (size + 31) // 32
    source = {
        "EXTCODECOPY": f"PUSH {size} PUSH0 PUSH0 PUSH {_ECHO} EXTCODECOPY",
    }.get(name, f"PUSH {size} PUSH0 PUSH0 {name}")
    setup = f"PUSH 1 PUSH {size} MSTORE"
    alloc = {}
    if name == "EXTCODECOPY":
        alloc = _contract(_ECHO, _ECHO_SOURCE)
    if name == "RETURNDATACOPY" and size:
        # Identity returns what it gets.
        setup += f" PUSH0 PUSH0 PUSH {size} PUSH0 PUSH 4 GAS STATICCALL POP"
    return load(
        "copies",
        f"{name}, {count}",
        name,
        source,
        setup=setup,
        gas=(112 if name == "EXTCODECOPY" else 12) + 3 * words,
        alloc=alloc,
        data=bytes(range(1, 65)) if name == "CALLDATACOPY" else b"",
    )


COPIES = tuple(
    _copies(name, size)
    for name in ("CALLDATACOPY", "CODECOPY", "EXTCODECOPY", "RETURNDATACOPY")
    for size in (32, 16_384)
)

# Storage and accounts

_EXISTING = {
    f"0x{SPREAD * number % 2**256:064x}": "0x01" for number in range(1, ACCOUNTS + 1)
}


def _next(op: str) -> str:
    """Return a loop body that moves to another memory word each time."""
    return f"PUSH32 0x{SPREAD:x} ADD DUP1 {op}"


WARM_STORAGE = loads(
    "warm storage",
    ("SLOAD", "SLOAD", "PUSH0 SLOAD POP", 104),
    (
        "SSTORE of the same value",
        "SSTORE",
        "PUSH0 PUSH0 SSTORE",
        104,
        "PUSH 1 PUSH 0 SSTORE PUSH 0 PUSH 0 SSTORE",
    ),
    (
        "SSTORE, changing",
        "SSTORE",
        "DUP1 PUSH0 SSTORE PUSH 2 PUSH0 SSTORE",
        220,
        "PUSH 1 DUP1 PUSH0 SSTORE",
    ),
    ("TLOAD", "TLOAD", "PUSH0 TLOAD POP", 104),
    ("TSTORE", "TSTORE", "PUSH 1 PUSH0 TSTORE", 105),
    ("TSTORE of new slots", "TSTORE", _next("DUP1 TSTORE"), 112, "PUSH0"),
)
_ALL_ACCOUNTS = {
    key: value
    for number in range(1, ACCOUNTS + 1)
    for key, value in _account(SPREAD * number & ADDRESS_MASK).items()
}
COLD = (
    *loads(
        "cold storage",
        ("SLOAD of absent slots", "SLOAD", _next("SLOAD POP"), 2111, "CALLVALUE"),
        ("SSTORE from 0", "SSTORE", _next("DUP1 SSTORE"), 22_115, "CALLER NUMBER SHL"),
        ("BALANCE of absent accounts", "BALANCE", _next("BALANCE POP"), 2611, "CALLER"),
    ),
    load(
        "cold storage",
        "SLOAD",
        "SLOAD",
        _next("SLOAD POP"),
        setup="PUSH0",
        gas=2111,
        storage=_EXISTING,
    ),
    load(
        "cold storage",
        "SSTORE to 0",
        "SSTORE",
        _next("PUSH0 SWAP1 SSTORE"),
        setup="PUSH0",
        gas=5_020,
        storage=_EXISTING,
    ),
    load(
        "cold storage",
        "BALANCE",
        "BALANCE",
        _next("BALANCE POP"),
        setup="PUSH0",
        gas=2611,
        alloc=_ALL_ACCOUNTS,
    ),
    load(
        "cold storage",
        "EXTCODEHASH",
        "EXTCODEHASH",
        _next("EXTCODEHASH POP"),
        setup="PUSH0",
        gas=2611,
        alloc=_ALL_ACCOUNTS,
    ),
)

# Calls

_NOBODY, _STOP, _DEEP, _REVERT = 0xE0, 0xE1, 0xE2, 0xE3
_ARGUMENTS = "PUSH0 PUSH0 PUSH0 PUSH0"


def _call(
    name: str,
    op: str,
    target: int,
    *,
    value: bool = False,
    gas: int = 120,
    arguments: str = _ARGUMENTS,
    **options: Any,
) -> Load:
    amount = ""
    if op in ("CALL", "CALLCODE"):
        amount = "PUSH 1" if value else "PUSH0"
    return load(
        "calls",
        name,
        op,
        f"{arguments} {amount} PUSH {target} GAS {op} POP",
        gas=gas,
        prepares=STACK | {"GAS"},
        **options,
    )


def _deep(op: str) -> dict[str, Any]:
    amount = "PUSH0" if op in ("CALL", "CALLCODE") else ""
    return _contract(_DEEP, f"{_ARGUMENTS} {amount} PUSH {_DEEP} GAS {op} STOP")


CALLS = (
    _call("CALL, no account", "CALL", _NOBODY),
    _call("CALL, STOP", "CALL", _STOP, alloc=_contract(_STOP, "STOP")),
    _call("STATICCALL, STOP", "STATICCALL", _STOP),
    _call("DELEGATECALL, STOP", "DELEGATECALL", _STOP),
    _call("CALLCODE, STOP", "CALLCODE", _STOP),
    _call("STATICCALL, identity", "STATICCALL", 4, gas=135),
    _call(
        "CALL, REVERT",
        "CALL",
        _REVERT,
        gas=125,
        alloc=_contract(_REVERT, "PUSH0 PUSH0 REVERT"),
    ),
    _call("CALL with value", "CALL", _STOP, value=True, gas=9120),
    _call(
        "CALL, as deep as gas reaches", "CALL", _DEEP, gas=100_000, alloc=_deep("CALL")
    ),
    _call(
        "STATICCALL, 1 MiB of input",
        "STATICCALL",
        _STOP,
        arguments="PUSH0 PUSH0 DUP3 PUSH0",
        setup=f"PUSH {2**20} PUSH 0 PUSH {2**20 - 32} MSTORE",
    ),
)

LOGS = (
    *(
        load(
            "logs",
            f"LOG{count}",
            f"LOG{count}",
            "PUSH0 " * (count + 2) + f"LOG{count}",
            gas=380 + 380 * count,
        )
        for count in (0, 1, 4)
    ),
    load(
        "logs",
        "LOG0, 1 KiB",
        "LOG0",
        "PUSH 1024 PUSH0 LOG0",
        setup="PUSH 1 PUSH 1000 MSTORE",
        gas=8192 + 380,
    ),
)

# Creations

INIT_CODE_LIMIT = 49_152
"""Bytes: https://eips.ethereum.org/EIPS/eip-3860."""


def _init_code(pattern: str) -> str:
    """Return a setup that fills memory with four bytes of code up to the limit."""
    return " ".join(
        (
            f"PUSH32 0x{pattern * 8} PUSH 0 MSTORE",
            *(f"PUSH {2**n} PUSH 0 PUSH {2**n} MCOPY" for n in range(5, 15)),
            "PUSH 16384 PUSH 0 PUSH 32768 MCOPY GAS",
        )
    )


_NEW_END = f"PUSH 1 ADD DUP1 PUSH {INIT_CODE_LIMIT - 32} MSTORE"
"""Writes a counter over the last word: no two creations have the same init code."""
_CREATE = f"{_NEW_END} PUSH {INIT_CODE_LIMIT} PUSH0 PUSH0 CREATE POP"

CREATES = loads(
    "creates",
    ("CREATE, no init code", "CREATE", "PUSH0 PUSH0 PUSH0 CREATE POP", 32_020),
    (
        "CREATE2, no init code",
        "CREATE2",
        "PUSH 1 ADD DUP1 PUSH0 PUSH0 PUSH0 CREATE2 POP",
        32_030,
        "PUSH0",
    ),
    (
        "CREATE, 48 KiB of JUMPDEST",
        "CREATE JUMPDEST",
        _CREATE,
        32_000 + 3072 + INIT_CODE_LIMIT + 50,
        _init_code("5b5b5b5b"),
    ),
    (
        "CREATE, a jump over 48 KiB of JUMPDEST and PUSH1",
        "CREATE",
        _CREATE,
        32_000 + 3072 + 200,
        f"{_init_code('5b5b6001')} PUSH 0x61 PUSH 0 MSTORE8 PUSH 0xbf PUSH 1 MSTORE8"
        " PUSH 0x00 PUSH 2 MSTORE8 PUSH 0x56 PUSH 3 MSTORE8"
        " PUSH 0x5b00 PUSH 48866 MSTORE",
    ),
    (
        "SELFDESTRUCT in init code",
        "CREATE SELFDESTRUCT",
        "PUSH 2 PUSH 30 PUSH0 CREATE POP",
        37_100,
        "PUSH 0x30ff PUSH 0 MSTORE",
    ),
)

OPCODE_LOADS: tuple[Load, ...] = (
    *ARITHMETIC,
    *CONTEXT,
    *STACK_LOADS,
    *JUMPS,
    *MEMORY,
    *KECCAK,
    *COPIES,
    *WARM_STORAGE,
    *COLD,
    *CALLS,
    *LOGS,
    *CREATES,
)
