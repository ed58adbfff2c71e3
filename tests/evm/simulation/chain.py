"""Simulations on a small chain in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evm.chain_config import ChainConfig
from evm.headers import Header
from evm.simulation.arguments import CallArguments
from evm.simulation.block_run import CallOutcome, SimulatedBlock
from evm.simulation.budget import GasBudget
from evm.simulation.overrides import AccountOverride, BlockOverrides
from evm.simulation.planning import BlockCalls, plan_blocks
from evm.simulation.simulator import Base, Simulator
from nodeapi.chain.memory_state import MemoryState
from samples.assembler import assemble
from samples.builder import ChainBuilder
from samples.schedules import from_genesis, make_genesis

ETHER = 10**18
GAS_CAP = 50_000_000
RICH, POOR, TARGET = b"\x11" * 20, b"\x22" * 20, b"\x33" * 20
ECRECOVER, SHA256, IDENTITY = (n.to_bytes(20, "big") for n in (1, 2, 4))


def chain(fork: str = "osaka", **alloc: Any) -> ChainBuilder:
    """Return a chain with one block, in which RICH has ether."""
    genesis = make_genesis(
        chain_id=7,
        first_blocks=from_genesis(fork),
        alloc={f"0x{RICH.hex()}": {"balance": hex(1000 * ETHER)}, **alloc},
    )
    builder = ChainBuilder(genesis)
    builder.block()
    return builder


def simulate(
    builder: ChainBuilder,
    *requests: BlockCalls,
    gas_cap: int = GAS_CAP,
    traces_transfers: bool = False,
    validates: bool = False,
) -> list[SimulatedBlock]:
    """Simulate blocks on the head of a chain."""
    return simulate_on(
        builder.state,
        builder.head,
        builder.config,
        requests,
        GasBudget(gas_cap),
        hashes=[builder.head.parent_hash],
        traces_transfers=traces_transfers,
        validates=validates,
    )


def simulate_on(
    state: MemoryState,
    header: Header,
    config: ChainConfig,
    requests: Sequence[BlockCalls],
    budget: GasBudget,
    *,
    hashes: Sequence[Any],
    traces_transfers: bool = False,
    validates: bool = False,
) -> list[SimulatedBlock]:
    """Simulate blocks after a block. hashes: from its parent's on."""
    planned = plan_blocks(requests, header)
    base = Base(header, config, state, state.open_trie(), hashes)
    simulator = Simulator(
        base, budget, traces_transfers=traces_transfers, validates=validates
    )
    return [simulator.execute(block) for block in planned]


def calls(*arguments: CallArguments, **accounts: AccountOverride) -> BlockCalls:
    """Return a block with calls. accounts: overrides by name of `PLACES`."""
    overrides = {PLACES[name]: account for name, account in accounts.items()}
    return BlockCalls(state_overrides=overrides, calls=arguments)


def empty(**overrides: Any) -> BlockCalls:
    """Return a block without calls, with overrides."""
    return BlockCalls(overrides=BlockOverrides(**overrides))


def only(simulated: Sequence[SimulatedBlock]) -> CallOutcome:
    """Return the outcome of a simulation's only call."""
    ((outcome,),) = [block.outcomes for block in simulated if block.outcomes]
    return outcome


def code(source: str) -> AccountOverride:
    """Return an override that gives an account this code."""
    return AccountOverride(code=assemble(source))


PLACES = {
    "rich": RICH,
    "poor": POOR,
    "target": TARGET,
    "ecrecover": ECRECOVER,
    "sha256": SHA256,
    "identity": IDENTITY,
}

RETURN_TOP = " PUSH 0 MSTORE PUSH 32 PUSH 0 RETURN"
"""Returns the word on top of the stack."""
