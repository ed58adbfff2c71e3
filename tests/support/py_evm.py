"""py-evm's call frames as an oracle, on this project's world instead of its database."""

from __future__ import annotations

from typing import Any

from eth.vm.execution_context import ExecutionContext
from eth.vm.message import Message

from evm.context import BlockContext
from evm.headers import ZERO_HASH
from nodeapi.chain.memory_state import MemoryState
from nodeapi.chain.py_evm import VMS, AccountDatabase, state_class

FORKS = tuple(name for name in VMS if not name.endswith("glacier"))
"""The forks that py-evm has with rules of their own, by this project's name."""


def stock_state(fork_name: str, block: BlockContext) -> Any:
    """Return py-evm's state of a fork, on an empty world.

    Its frames, opcodes and precompiles are py-evm's.
    """
    empty = MemoryState()
    world = AccountDatabase(empty, empty.open_trie())
    context = ExecutionContext(
        coinbase=block.coinbase,
        timestamp=block.timestamp,
        block_number=block.number,
        difficulty=block.difficulty,
        mix_hash=block.mix_hash,
        gas_limit=block.gas_limit,
        prev_hashes=block.ancestor_hashes,
        chain_id=block.chain_id,
        base_fee_per_gas=block.base_fee,
        excess_blob_gas=block.excess_blob_gas,
    )
    state = state_class(VMS[fork_name])(world, context, ZERO_HASH)
    state.world, state.fork_name = world, fork_name
    return state


def stock_call(
    state: Any, sender: bytes, to: bytes, code: bytes, data: bytes, **message: Any
) -> Any:
    """Execute a call, and return its frame."""
    message = {"value": 0, **message}
    return state.computation_class.apply_message(
        state,
        Message(to=to, sender=sender, data=data, code=code, **message),
        state.get_transaction_context_class()(
            gas_price=10, origin=sender, blob_versioned_hashes=[b"\x01" * 32]
        ),
    )
