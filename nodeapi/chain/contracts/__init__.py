"""The contracts of the sample chain and of generated chains, from their own texts.

Each `NAME.asm` beside this file is a contract's runtime code, with its functions and
storage told at its head; `NAME.constructor.asm`, where there is one, is what its init
code runs first. `nodeapi.chain.assembler` tells the language.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from nodeapi.chain.assembler import assemble, init_code

_FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Contract:
    """A contract's code, as it lies in the state and as it is deployed."""

    runtime: bytes
    constructor: str = field(repr=False)
    """Assembler text, empty for none."""

    def init_code(self, arguments: bytes = b"") -> bytes:
        """Return the input of a transaction that deploys the contract."""
        return init_code(self.runtime, self.constructor, arguments)


@cache
def contract(name: str) -> Contract:
    """Return a contract by its file's name, such as `token`."""
    source = (_FOLDER / f"{name}.asm").read_text(encoding="utf-8")
    constructor = _FOLDER / f"{name}.constructor.asm"
    return Contract(
        runtime=assemble(source, _embedded(name)),
        constructor=(
            constructor.read_text(encoding="utf-8") if constructor.exists() else ""
        ),
    )


def _embedded(name: str) -> dict[str, bytes]:
    """Return the init codes that a contract carries with it."""
    if name != "factory":
        return {}
    return {
        "child": contract("child").init_code(),
        "failing": assemble("PUSH 0xbad PUSH 0 MSTORE PUSH 0x20 PUSH 0 REVERT"),
    }
