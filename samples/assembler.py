"""A two-pass EVM assembler for contracts that people can read.

A line has any number of instructions. A comment begins with `;` and ends with the line:

    PUSH 0 CALLDATALOAD         ; [word]        shortest push that holds the value
    PUSH4 selector("f()") EQ    ; [is f]        a push of a given size
    PUSH @f JUMPI               ; []            the place of a label, always two bytes
    STOP
    f:                          ; a label, emits JUMPDEST
    PUSH #child PUSH @child PUSH 0 CODECOPY     ; size and place of data
    .data child                 ; bytes that `assemble` is given under that name
    .data key 0xc0ffee          ; bytes that stand here
    DUPN 17 SWAPN 17            ; the depth, from 17 to 235
    EXCHANGE 1 2                ; two depths below the top, in ascending order

Values are decimal or 0x… numbers, `selector("…")`, `topic("…")` (both of a signature)
and `"text"` (for PUSH32: padded on the right, as `bytes32` is).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from abi.encoding import selector, topic

_ROWS = {
    0x00: "STOP ADD MUL SUB DIV SDIV MOD SMOD ADDMOD MULMOD EXP SIGNEXTEND",
    0x10: "LT GT SLT SGT EQ ISZERO AND OR XOR NOT BYTE SHL SHR SAR CLZ",
    0x20: "SHA3",
    0x30: "ADDRESS BALANCE ORIGIN CALLER CALLVALUE CALLDATALOAD CALLDATASIZE "
    "CALLDATACOPY CODESIZE CODECOPY GASPRICE EXTCODESIZE EXTCODECOPY "
    "RETURNDATASIZE RETURNDATACOPY EXTCODEHASH",
    0x40: "BLOCKHASH COINBASE TIMESTAMP NUMBER PREVRANDAO GASLIMIT CHAINID "
    "SELFBALANCE BASEFEE BLOBHASH BLOBBASEFEE SLOTNUM",
    0x50: "POP MLOAD MSTORE MSTORE8 SLOAD SSTORE JUMP JUMPI PC MSIZE GAS JUMPDEST "
    "TLOAD TSTORE MCOPY PUSH0",
    0x60: " ".join(f"PUSH{size}" for size in range(1, 33)),
    0x80: " ".join(f"DUP{depth}" for depth in range(1, 17)),
    0x90: " ".join(f"SWAP{depth}" for depth in range(1, 17)),
    0xA0: " ".join(f"LOG{topics}" for topics in range(5)),
    0xE6: "DUPN SWAPN EXCHANGE",
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


_TOKEN = re.compile(r'(?:selector|topic)\("[^"]*"\)|"[^"]*"|;.*|\S+')
_HASHED = re.compile(r'(selector|topic)\("([^"]*)"\)')
_LABEL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_REFERENCE_BYTES = 2  # reaches beyond the 24 576 bytes that EIP-170 allows
_PUSH1 = OPCODES["PUSH1"]
_DEEP = {"DUPN": 1, "SWAPN": 1, "EXCHANGE": 2}
"""Number of depths that stand behind an instruction of EIP-8024."""


class AssemblerError(ValueError):
    """Raised when a source text can't be assembled.

    The message contains the line number.
    """


class _Reference(NamedTuple):
    """A two-byte placeholder in the code: a label's offset (`@`) or size (`#`)."""

    offset: int
    kind: str
    label: str
    line: int


class _Assembly:
    """Result of the first pass: code with placeholders, labels, and placeholders."""

    def __init__(self, data: Mapping[str, bytes]) -> None:
        self.given = data
        self.code = bytearray()
        self.places: dict[str, int] = {}
        self.sizes: dict[str, int] = {}
        self.references: list[_Reference] = []

    def place(self, label: str, line: int) -> None:
        if not _LABEL.match(label):
            raise AssemblerError(f"line {line}: bad label {label!r}")
        if label in self.places:
            raise AssemblerError(f"line {line}: label {label!r} stands twice")
        self.places[label] = len(self.code)

    def line(self, text: str, number: int) -> None:
        tokens = (t for t in _TOKEN.findall(text) if not t.startswith(";"))
        for token in tokens:
            if token == ".data":
                self._data(tokens, number)
            elif token.endswith(":"):
                self.place(token[:-1], number)
                self.code.append(OPCODES["JUMPDEST"])
            elif token == "PUSH" or (token.startswith("PUSH") and token != "PUSH0"):
                self._push(token, next(tokens, ""), number)
            elif token in _DEEP:
                depths = [next(tokens, "") for _ in range(_DEEP[token])]
                self.code += bytes([OPCODES[token], _depth_byte(depths, number)])
            elif token in OPCODES:
                self.code.append(OPCODES[token])
            else:
                raise AssemblerError(f"line {number}: no instruction {token!r}")

    def _data(self, tokens: Iterator[str], line: int) -> None:
        label = next(tokens, "")
        literal = next(tokens, None)
        self.place(label, line)
        if literal is not None:
            content = _literal(literal, line)
        elif label in self.given:
            content = self.given[label]
        else:
            raise AssemblerError(f"line {line}: no data given for {label!r}")
        self.sizes[label] = len(content)
        self.code += content

    def _push(self, mnemonic: str, operand: str, line: int) -> None:
        if operand[:1] in ("@", "#"):
            if mnemonic not in ("PUSH", "PUSH2"):
                raise AssemblerError(f"line {line}: a reference needs PUSH or PUSH2")
            self.code.append(_PUSH1 + _REFERENCE_BYTES - 1)
            self.references.append(
                _Reference(len(self.code), operand[0], operand[1:], line)
            )
            self.code += bytes(_REFERENCE_BYTES)
            return
        value = _literal(operand, line)
        if mnemonic == "PUSH":
            value = value.lstrip(b"\0") or b"\0"
            mnemonic = f"PUSH{len(value)}"
        if mnemonic not in OPCODES:
            raise AssemblerError(f"line {line}: no instruction {mnemonic!r}")
        size = OPCODES[mnemonic] - _PUSH1 + 1
        if len(value) > size:
            raise AssemblerError(f"line {line}: {operand} is too long for {mnemonic}")
        is_text = operand.startswith('"')
        self.code.append(OPCODES[mnemonic])
        self.code += value.ljust(size, b"\0") if is_text else value.rjust(size, b"\0")

    def resolve(self) -> bytes:
        for reference in self.references:
            table = self.places if reference.kind == "@" else self.sizes
            if reference.label not in table:
                raise AssemblerError(
                    f"line {reference.line}: no label {reference.label!r}"
                )
            self.code[reference.offset : reference.offset + _REFERENCE_BYTES] = table[
                reference.label
            ].to_bytes(_REFERENCE_BYTES, "big")
        return bytes(self.code)


def _depth_byte(texts: list[str], line: int) -> int:
    """Return the byte in which DUPN, SWAPN or EXCHANGE has its depths (EIP-8024)."""
    match [int(text) if text.isdecimal() else 0 for text in texts]:
        case [depth] if 17 <= depth <= 235:
            return (depth - 145) % 256
        case [first, second] if 1 <= first < second <= 30 - first:
            row, column = (
                (first - 1, second - 1) if second <= 16 else (29 - second, first - 1)
            )
            return (16 * row + column) ^ 143
    raise AssemblerError(f"line {line}: bad depth {' '.join(texts)!r}")


def _literal(text: str, line: int) -> bytes:
    """Return the bytes of a literal. Numbers have no leading zero bytes."""
    hashed = _HASHED.fullmatch(text)
    if hashed:
        kind, signature = hashed.groups()
        return selector(signature) if kind == "selector" else topic(signature)
    if len(text) >= 2 and text[0] == text[-1] == '"':
        return text[1:-1].encode()
    try:
        if text.startswith("0x"):
            digits = text[2:]
            return bytes.fromhex(digits.rjust(len(digits) + len(digits) % 2, "0"))
        number = int(text)
        return number.to_bytes((number.bit_length() + 7) // 8 or 1, "big")
    except (ValueError, OverflowError):
        raise AssemblerError(f"line {line}: bad value {text!r}") from None


def assemble(source: str, data: Mapping[str, bytes] | None = None) -> bytes:
    """Return the bytecode of a source text.

    The module's docstring describes the language.

    data: contents of the `.data` labels that the text declares without contents.

    Raises: AssemblerError with the line number, counted from 1.
    """
    assembly = _Assembly(data or {})
    for number, text in enumerate(source.splitlines(), start=1):
        assembly.line(text, number)
    return assembly.resolve()


def init_code(runtime: bytes, constructor: str = "", arguments: bytes = b"") -> bytes:
    """Return init code that runs a constructor, then deploys the runtime code.

    constructor: assembler text that leaves the stack unchanged. The labels `@arguments`
        and `#arguments` are the offset and size of the arguments.
    """
    return assemble(
        f"{constructor}\n"
        "PUSH #runtime DUP1 PUSH @runtime PUSH 0 CODECOPY ; [size]\n"
        "PUSH 0 RETURN\n"
        ".data runtime\n.data arguments",
        {"runtime": runtime, "arguments": arguments},
    )
