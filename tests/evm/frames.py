"""Call frames for tests, on this project's State and on py-evm's own."""

from __future__ import annotations

from typing import Any

from eth.vm.execution_context import ExecutionContext
from eth.vm.message import Message

from evm.chain_config import LADDER
from evm.fork import Fork
from evm.state import TransactionContext, WorldState
from evm.world import World
from nodeapi.chain.memory_state import MemoryState

SENDER = b"\x11" * 20
CONTRACT = b"\x77" * 20
COINBASE = b"\xcc" * 20
ETHER = 10**18


def execution_context(**changes: Any) -> ExecutionContext:
    values = {
        "coinbase": COINBASE,
        "timestamp": 1_700_000_000,
        "block_number": 500,
        "difficulty": 0x20000,
        "mix_hash": bytes(range(32)),
        "gas_limit": 30_000_000,
        "prev_hashes": [bytes([n]) * 32 for n in range(1, 255)],
        "chain_id": 1,
        "base_fee_per_gas": 7,
        "excess_blob_gas": 10_000_000,
    }
    return ExecutionContext(**{**values, **changes})


def new_state(fork: Fork | str, **context: Any) -> Any:
    """Return this project's state on a world in which only the sender has ether."""
    fork = LADDER[fork] if isinstance(fork, str) else fork
    state = fork.new_state(World(MemoryState()), execution_context(**context))
    state.set_balance(SENDER, 1000 * ETHER)
    return state


def stock_state(name: str) -> Any:
    """Return the same state with py-evm's own frames, opcodes and precompiles."""
    fork = LADDER[name]
    base = fork.base_state_class.__mro__[2]
    state_class = type("Stock", (WorldState, base), {})
    state = state_class(World(MemoryState()), execution_context(), fork)
    state.set_balance(SENDER, 1000 * ETHER)
    return state


def call(
    state: Any,
    code: bytes,
    data: bytes = b"",
    *,
    gas: int = 1_000_000,
    value: int = 0,
    **message: Any,
) -> Any:
    """Put code at CONTRACT, call it, and return the frame."""
    state.set_code(CONTRACT, code)
    state._account_db.lock_changes()
    return state.computation_class.apply_message(
        state,
        Message(
            gas=gas,
            to=CONTRACT,
            sender=SENDER,
            value=value,
            data=data,
            code=code,
            **message,
        ),
        TransactionContext(
            gas_price=10, origin=SENDER, blob_versioned_hashes=[b"\x01" * 32]
        ),
    )


def call_precompile(state: Any, number: int, data: bytes, gas: int = 10**7) -> Any:
    """Call a precompiled contract directly, and return the frame."""
    return state.computation_class.apply_message(
        state,
        Message(
            gas=gas,
            to=number.to_bytes(20, "big"),
            sender=SENDER,
            value=0,
            data=data,
            code=b"",
        ),
        TransactionContext(gas_price=10, origin=SENDER),
    )
