"""Programs that spend a transaction's gas on one kind of instruction or precompile.

A program repeats a body until little gas is left, and then stops. Its transactions
therefore succeed with any gas limit. `tests/bench/test_worst.py` checks that at least 80 % of
the gas is spent on the instructions that a load names.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypedDict

from eth_typing import Address

from samples.assembler import assemble
from samples.builder import ChainBuilder
from samples.signers import Signer

CODE_LIMIT = 24_576
"""Bytes of a contract's code: https://eips.ethereum.org/EIPS/eip-170."""
STACK = frozenset(
    {"POP", "PUSH0"}
    | {f"PUSH{size}" for size in range(1, 33)}
    | {f"{kind}{depth}" for kind in ("DUP", "SWAP") for depth in range(1, 17)}
)
"""Mnemonics that bring operands to an instruction and take results away."""


class Options(TypedDict):
    """Options of the load's transactions, as keyword arguments of the builder."""

    max_fee_per_gas: int
    max_priority_fee_per_gas: int


Send = Callable[[ChainBuilder, Signer, Address, int, Options], None]
"""(chain, sender, the load's contract, gas, options) → None."""


@dataclass(frozen=True, slots=True)
class Load:
    """A contract, and the transactions that call it in one block."""

    family: str
    """Opcode class, or `precompile`."""
    name: str
    code: bytes
    opcodes: frozenset[str]
    """Mnemonics that the gas is spent on."""
    data: bytes = b""
    """Call data of each transaction."""
    alloc: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Other accounts that the genesis must have, as in `genesis.json`."""
    storage: dict[str, str] = field(default_factory=dict)
    """The contract's storage in the genesis, as in `genesis.json`."""
    prepares: frozenset[str] = STACK
    """Mnemonics that the named opcodes need and that count as part of the class."""
    gas: int = 0
    """Maximum gas of one run of the repeated body."""
    gas_limit: int = 2**24
    """Gas for the block's transactions: https://eips.ethereum.org/EIPS/eip-7825."""
    send: Send | None = None
    """Adds the block's transactions. By default one transaction calls the contract."""

    @property
    def case(self) -> str:
        """The load's name in tables."""
        return f"{self.family}: {self.name}"


def program(
    body: str,
    *,
    gas: int,
    setup: str = "",
    ending: str = "STOP",
    repeat: int | None = None,
) -> bytes:
    """Return the bytecode of a loop that repeats a body while enough gas is left.

    body: assembler text that does not change the stack's height. `{0}` in it is replaced
      by a different number in each copy, for unique labels.
    gas: the maximum cost of the body. setup, ending: assembler text that is run once.
    repeat: copies of the body in each iteration of the loop. By default, an iteration
      costs about 50,000 gas and the code fits into a contract.
    """
    if repeat is None:
        size = len(assemble(body.replace("{0}", "")))
        repeat = max(1, min(50_000 // gas, (CODE_LIMIT - 4096) // size))
    # EIP-150: a call gets at most 63/64 of the remaining gas, which must cover its cost.
    turn = gas * repeat + gas // 32 + 1000
    code = assemble(
        "\n".join(
            (
                *(setup, "again:"),
                *(body.replace("{0}", f"{number}") for number in range(repeat)),
                *(f"PUSH {turn} GAS GT PUSH @again JUMPI", ending),
            )
        )
    )
    if len(code) > CODE_LIMIT:
        raise ValueError(f"{len(code)} bytes of code exceed {CODE_LIMIT}")
    return code


def load(
    family: str,
    name: str,
    opcodes: str,
    body: str,
    *,
    gas: int,
    setup: str = "",
    ending: str = "STOP",
    repeat: int | None = None,
    **options: Any,
) -> Load:
    """Return the load that runs a `program`. opcodes: mnemonics, separated by spaces."""
    code = program(body, gas=gas, setup=setup, ending=ending, repeat=repeat)
    return Load(family, name, code, frozenset(opcodes.split()), gas=gas, **options)
