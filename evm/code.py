"""The jump destinations of EVM code."""

from __future__ import annotations

import re
from bisect import bisect_right
from threading import Lock

from evm.frame_errors import InvalidJump

STOP = 0x00
JUMPDEST = 0x5B
PUSH1 = 0x60

_PUSHES = [b"[\\x%02x].{%d}" % (PUSH1 + size - 1, size) for size in range(1, 33)]
_OTHERS = rb"[^\x60-\x7f]{1,32}+"
_INSTRUCTIONS = re.compile(b"(?:%b)*+" % b"|".join([_OTHERS, *_PUSHES]), re.DOTALL)
# The last PUSH may have fewer data bytes. Pieces are short, so that a search for an
# instruction within one is fast.
_PIECES = re.compile(
    b"(?:%b){1,32}+" % b"|".join([_OTHERS, *_PUSHES]).replace(b".{", b".{0,"),
    re.DOTALL,
)
_YES, _NO = 1, 2

JUMP_DESTINATION_BYTES = 64 * 2**20
"""Memory of a process for the jump destinations of code. A contract of mainnet takes 20 kB
on average, and a block executes 150 contracts."""
_START_BYTES = 40
"""A list's reference, and an integer."""
_OBJECT_BYTES = 300


class JumpDestinations:
    """The valid jump destinations in a contract's code.

    Code is analysed lazily, up to the requested position. A block may create a thousand
    contracts, each with 49,152 bytes of init code and a single jump.
    """

    __slots__ = ("_code", "_known", "_starts")

    def __init__(self, code: bytes) -> None:
        self._code = code
        self._starts = [piece.start() for piece in _PIECES.finditer(code)]
        self._known = bytearray(len(code))
        """Position → _YES or _NO, or 0 if it has not been checked yet."""

    @property
    def size(self) -> int:
        """Bytes of memory, with the code."""
        return 2 * len(self._code) + _START_BYTES * len(self._starts) + _OBJECT_BYTES

    def __contains__(self, position: int) -> bool:
        """Return whether there is a JUMPDEST which is not part of a PUSH's data."""
        code = self._code
        if position >= len(code) or code[position] != JUMPDEST:
            return False
        known = self._known[position]
        if not known:
            start = self._starts[bisect_right(self._starts, position) - 1]
            is_first_byte = _INSTRUCTIONS.fullmatch(code, start, position)
            known = self._known[position] = _YES if is_first_byte else _NO
        return known == _YES


class JumpDestinationCache:
    """The jump destinations of code that was executed lately, within a limit of memory.

    Beyond the limit, the oldest ones are removed, so that a cache hit is one look-up.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._known: dict[bytes, JumpDestinations] = {}
        self._bytes = 0
        self._lock = Lock()

    def get(self, code: bytes) -> JumpDestinations:
        """Return the jump destinations of code. All executions of the code share them."""
        found = self._known.get(code)
        return self._add(code) if found is None else found

    def _add(self, code: bytes) -> JumpDestinations:
        destinations = JumpDestinations(code)
        with self._lock:
            replaced = self._known.pop(code, None)
            self._bytes += destinations.size - (
                0 if replaced is None else replaced.size
            )
            self._known[code] = destinations
            while self._bytes > self._limit_bytes:
                self._bytes -= self._known.pop(next(iter(self._known))).size
        return destinations


jump_destinations = JumpDestinationCache(JUMP_DESTINATION_BYTES).get


def check_jump(code: bytes, destination: int) -> None:
    """Raise InvalidJump if a destination is no JUMPDEST, or is data of a PUSH."""
    if (
        destination >= len(code)
        or code[destination] != JUMPDEST
        or destination not in jump_destinations(code)
    ):
        raise InvalidJump
