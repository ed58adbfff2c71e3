"""EVM code in execution: its bytes, its jump destinations, where it is read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

STOP = 0x00
JUMPDEST = 0x5B
PUSH1 = 0x60

_PUSHES = b"|".join(
    b"[\\x%02x].{0,%d}" % (PUSH1 + size - 1, size) for size in range(1, 33)
)
_JUMP_DESTINATION = re.compile(
    rb"(?:[^\x5b\x60-\x7f]|" + _PUSHES + rb")*+(\x5b)", re.DOTALL
)
"""Skips instructions with the data they push, up to the next JUMPDEST."""


@lru_cache(maxsize=1024)
def jump_destinations(code: bytes) -> frozenset[int]:
    """Return the positions to which code may jump: JUMPDESTs that are no push data."""
    destinations = []
    position = 0
    while match := _JUMP_DESTINATION.match(code, position):
        destinations.append(match.start(1))
        position = match.end()
    return frozenset(destinations)


class Code:
    """What py-evm calls a code stream, and its opcodes read from."""

    __slots__ = ("program_counter", "raw")

    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        self.program_counter = 0

    def __len__(self) -> int:
        return len(self.raw)

    def __getitem__(self, position: int) -> int:
        return self.raw[position]

    def __iter__(self) -> Iterator[int]:
        """Yield opcodes from the program counter on, and at the end a STOP."""
        while self.program_counter < len(self.raw):
            opcode = self.raw[self.program_counter]
            self.program_counter += 1
            yield opcode
        yield STOP

    def read(self, size: int) -> bytes:
        """Return the bytes at the program counter, and move it past them."""
        start = self.program_counter
        self.program_counter = start + size
        return self.raw[start : start + size]

    def peek(self) -> int:
        """Return the opcode at the program counter."""
        position = self.program_counter
        return self.raw[position] if position < len(self.raw) else STOP

    @contextmanager
    def seek(self, position: int) -> Iterator[Code]:
        """Read elsewhere for a while."""
        anchor = self.program_counter
        self.program_counter = position
        try:
            yield self
        finally:
            self.program_counter = anchor

    def is_valid_opcode(self, position: int) -> bool:
        """Return whether the JUMPDEST at a position is an instruction."""
        return position in jump_destinations(self.raw)
