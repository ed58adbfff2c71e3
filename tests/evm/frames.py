"""Call frames for tests, on this project's state and on py-evm's."""

from __future__ import annotations

from typing import Any

from evm.chain_config import LADDER
from evm.context import BlockContext, TransactionContext
from evm.frame import Frame
from evm.message import Message
from evm.rules.fork import Fork
from evm.state import State
from evm.tracers.watching import Watcher
from evm.world import World
from nodeapi.chain.memory_state import MemoryState
from tests.support import py_evm

SENDER = b"\x11" * 20
CONTRACT = b"\x77" * 20
COINBASE = b"\xcc" * 20
ETHER = 10**18


def block_context(**changes: Any) -> BlockContext:
    """Return the block in which the frames of tests are executed."""
    values: dict[str, Any] = {
        "coinbase": COINBASE,
        "timestamp": 1_700_000_000,
        "number": 500,
        "difficulty": 0x20000,
        "mix_hash": bytes(range(32)),
        "gas_limit": 30_000_000,
        "ancestor_hashes": [bytes([n]) * 32 for n in range(1, 255)],
        "chain_id": 1,
        "base_fee": 7,
        "excess_blob_gas": 10_000_000,
    }
    return BlockContext(**{**values, **changes})


def new_state(
    fork: Fork | str, watcher: Watcher | None = None, **context: Any
) -> State:
    """Return a state on a world in which only the sender has ether."""
    fork = LADDER[fork] if isinstance(fork, str) else fork
    make = State if watcher is None else watcher.new_state
    state = make(World(MemoryState()), block_context(**context), fork)
    state.world.set_balance(SENDER, 1000 * ETHER)
    return state


def stock_state(name: str) -> Any:
    """Return the same state with py-evm's own frames, opcodes and precompiles."""
    state = py_evm.stock_state(name, block_context())
    state.world.set_balance(SENDER, 1000 * ETHER)
    return state


RESERVOIR = 10**12
"""State gas of frames, so that none of it is taken from their execution gas."""


def call(
    state: Any,
    code: bytes,
    data: bytes = b"",
    *,
    gas: int = 1_000_000,
    value: int = 0,
    **message: Any,
) -> Any:
    """Put code at CONTRACT, call it, and return the frame, which may be py-evm's."""
    state.world.set_code(CONTRACT, code)
    state.world.lock_changes()
    message |= {"gas": gas, "value": value}
    if not isinstance(state, State):
        return py_evm.stock_call(state, SENDER, CONTRACT, code, data, **message)
    return _run(
        state, Message(to=CONTRACT, sender=SENDER, data=data, code=code, **message)
    )


def call_precompile(state: Any, number: int, data: bytes, gas: int = 10**7) -> Any:
    """Call a precompiled contract directly, and return the frame."""
    to = number.to_bytes(20, "big")
    if not isinstance(state, State):
        return py_evm.stock_call(state, SENDER, to, b"", data, gas=gas)
    return _run(state, Message(gas, to, SENDER, 0, data, b""))


def _run(state: State, message: Message) -> Frame:
    frame = state.frame(message, TransactionContext(SENDER, 10, [b"\x01" * 32]))
    if state.fork.prices.state is not None:
        frame.reservoir = RESERVOIR
    frame.run()
    return frame
