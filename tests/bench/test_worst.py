"""Each load of the benchmark `worst` spends its gas on its own instruction."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from bench.worst_loads import Load
from evm.opcodes import OPCODE_NAMES
from nodeapi.chain.replay import Origin, Replay
from samples.builder import ChainBuilder
from tests.support.waiting import PATIENCE_SECONDS

LEAST_SHARE = 0.8
STIPEND = 2300
MANY_GAS = 600_000
FEW_GAS = 200_000
"""Gas of loads whose instruction is expensive, and of others, which take long to trace."""
EXPENSIVE_GAS = 500
LARGE_INPUTS = "1 MiB of input"
LARGE_INPUT_GAS = 3 * 2**15 + 2**30 // 512
"""Gas for the memory of such an input."""


def gas_before(load: Load) -> int:
    """Return the gas that the load's program spends before its loop."""
    return LARGE_INPUT_GAS if load.case.endswith(LARGE_INPUTS) else 0


class GasByOpcode:
    """A tracer that counts the gas of each opcode, without the gas of called frames.

    A call of a precompile, which has no instructions, counts as part of the CALL.
    """

    wants_steps = wants_frames = True

    def __init__(self) -> None:
        self.spent: Counter[str] = Counter()
        self._steps: list[int] = []
        self._count = 0

    def start(self, transaction: Any) -> None:
        pass

    def step(self, step: Any) -> None:
        self._count += 1
        if step.error is None:
            self.spent[OPCODE_NAMES[step.op]] += step.cost

    def fault(self, step: Any) -> None:
        pass

    def enter(self, frame: Any) -> None:
        self._steps.append(self._count)

    def exit(self, frame: Any) -> None:
        has_no_steps = self._steps.pop() == self._count
        if frame.type.startswith("CREATE") or frame.type == "SELFDESTRUCT":
            return
        stipend = STIPEND if frame.type in ("CALL", "CALLCODE") and frame.value else 0
        self.spent[frame.type] -= frame.gas - stipend
        if has_no_steps:
            self.spent[frame.type] += frame.gas_used

    def log(self, *log: Any) -> None:
        pass

    def end(self, frame: Any, gas_used: int) -> None:
        pass

    def result(self) -> bytes:
        return b""


@pytest.fixture(scope="module")
def chain() -> ChainBuilder:
    from bench.worst_chain import genesis

    return ChainBuilder(genesis())


def test_gas_is_spent_on_what_the_loads_name(chain: ChainBuilder) -> None:
    from bench.worst_chain import LOADS  # assembles programs for a second

    assert len({load.case for load in LOADS}) == len(LOADS)
    programs = [load for load in LOADS if load.opcodes]
    assert len(programs) > 100
    assert [
        load.case for load in programs if not spends_gas_as_named(load, chain)
    ] == []


def spends_gas_as_named(load: Load, chain: ChainBuilder) -> bool:
    from bench.worst_chain import add_block

    twin = chain.fork()
    # It raises if the transaction fails, which it does if a precompile's call fails.
    least = MANY_GAS if load.gas > EXPENSIVE_GAS else FEW_GAS
    add_block(twin, load, gas=gas_before(load) + least + 6 * load.gas)
    fork = chain.next_fork()
    origin = Origin(
        twin.blocks[0], fork, chain.config, chain.state, [chain.genesis.header.hash]
    )
    counter = GasByOpcode()
    Replay(origin).trace(counter, timeout=PATIENCE_SECONDS)
    total = sum(counter.spent.values()) - gas_before(load)
    named = sum(counter.spent[op] for op in load.opcodes)
    prepares = sum(counter.spent[op] for op in load.prepares - load.opcodes)
    # Instructions that prepare operands have no load of their own.
    return named + prepares >= LEAST_SHARE * total and named >= prepares / 3


def test_gas_is_spent_on_transactions(chain: ChainBuilder) -> None:
    from bench.worst_chain import add_block
    from bench.worst_transactions import COLD_CODE, CONTRACTS, TRANSACTIONS

    for load in TRANSACTIONS:
        add_block(chain.fork(), load, gas=MANY_GAS)
    add_block(chain.fork(), COLD_CODE)
    called = COLD_CODE.gas_limit // COLD_CODE.gas
    assert CONTRACTS - 40 < called < CONTRACTS
