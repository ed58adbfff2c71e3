"""Contracts of the sample chain and of generated chains, from assembler sources.

Each `NAME.asm` in this folder is a contract's runtime code. The comments at its start
list its functions and storage. `NAME.constructor.asm`, if it exists, is the code that
its init code runs first. `samples.assembler` describes the language.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from samples.assembler import assemble, init_code

_FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Contract:
    """A contract's runtime code and its constructor."""

    runtime: bytes
    constructor: str = field(repr=False)
    """Assembler text, or "" without a constructor."""

    def init_code(self, arguments: bytes = b"") -> bytes:
        """Return the input of a transaction that deploys the contract."""
        return init_code(self.runtime, self.constructor, arguments)


@cache
def contract(name: str) -> Contract:
    """Return the contract with this file name, such as `token`."""
    source = (_FOLDER / f"{name}.asm").read_text(encoding="utf-8")
    constructor = _FOLDER / f"{name}.constructor.asm"
    return Contract(
        runtime=assemble(source, _embedded(name)),
        constructor=(
            constructor.read_text(encoding="utf-8") if constructor.exists() else ""
        ),
    )


def _embedded(name: str) -> dict[str, bytes]:
    """Return the init codes of the contracts that a contract creates, by label."""
    if name != "factory":
        return {}
    return {
        "child": contract("child").init_code(),
        "failing": assemble("PUSH 0xbad PUSH 0 MSTORE PUSH 0x20 PUSH 0 REVERT"),
    }
