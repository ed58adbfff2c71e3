"""keccak256PreimageTracer: the data that a transaction hashed, by hash.

Source: go-ethereum, eth/tracers/native/keccak256_preimage.go
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evm.opcodes import NUMBERS
from evm.signatures import keccak
from evm.tracers.steps import InstructionTracer

if TYPE_CHECKING:
    from evm.tracers.steps import Step

MAX_PADDING = 1024 * 1024
"""Bytes beyond the memory that geth pads with zeros. Longer ranges are omitted."""

_KECCAK256 = NUMBERS["KECCAK256"]
_UINT64 = 2**64 - 1
_INT64 = 2**63 - 1


def keccak_input(step: Step) -> bytes | None:
    """Return the input of KECCAK256 before its execution.

    Return None for another instruction, for missing operands, and for a range that is
    too long. geth reads the lower 64 bits of operands.
    """
    values: list[int] = step.frame.stack
    if step.op != _KECCAK256 or len(values) < 2:
        return None
    start, size = values[-1] & _UINT64, values[-2] & _UINT64
    memory: bytearray = step.frame.memory
    if max(start, size) > _INT64 or start + size - len(memory) > MAX_PADDING:
        return None
    return bytes(memory[start : start + size]).ljust(size, b"\0")


class KeccakPreimages(InstructionTracer):
    """A `StepTracer` whose result is `{"0x<hash>": "0x<preimage>"}`, sorted by hash."""

    def __init__(self) -> None:
        self._preimages: dict[bytes, bytes] = {}

    def step(self, step: Step) -> None:
        """Record the input, even if the instruction fails afterwards."""
        preimage = keccak_input(step)
        if preimage is not None:
            self._preimages[keccak(preimage)] = preimage

    def result(self) -> bytes:
        """Return the preimages as JSON."""
        members = [
            f'"0x{digest.hex()}":"0x{preimage.hex()}"'
            for digest, preimage in sorted(self._preimages.items())
        ]
        return f"{{{','.join(members)}}}".encode()
