"""The payload of eth_simulateV1, between JSON and Python.

Source: go-ethereum internal/ethapi/simulate.go, `simOpts` and `simBlock`
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from evm.simulation.planning import BlockCalls, check_counts
from nodeapi.arguments.calls import (
    decode_block_overrides,
    decode_call,
    decode_state_overrides,
    encode_block_overrides,
    encode_call,
    encode_state_overrides,
)
from nodeapi.encoding import boolean
from nodeapi.go.fields import GoField, decode_fields, list_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """The decoded payload of eth_simulateV1."""

    blocks: Sequence[BlockCalls] = ()
    traces_transfers: bool = False
    """Whether transfers of ether are reported as logs."""
    validates: bool = False
    """Whether nonces and base fees are checked as in a real block."""
    is_full: bool = False
    """Whether the blocks contain transaction objects instead of hashes."""


_BLOCK_FIELDS = {
    "BlockOverrides": GoField("overrides", decode_block_overrides),
    "StateOverrides": GoField("state_overrides", decode_state_overrides),
    "Calls": GoField("calls", list_of(decode_call, "[]ethapi.TransactionArgs")),
}


def _block(value: Any) -> BlockCalls:
    return BlockCalls(**decode_fields(value, "ethapi.simBlock", _BLOCK_FIELDS))


_list_of_blocks = list_of(_block, "[]ethapi.simBlock")


def _blocks(value: Any) -> tuple[BlockCalls, ...]:
    """Decode a list of blocks. Too many blocks or calls are rejected before that."""
    if type(value) is list:
        check_counts([_count_calls(block) for block in value])
    return _list_of_blocks(value)


def _count_calls(block: Any) -> int:
    """Return the number of calls of a block that was not decoded yet."""
    members = block.items() if type(block) is dict else ()
    return sum(
        len(member)
        for name, member in members
        if type(member) is list and name.casefold() == "calls"
    )


_FIELDS = {
    "BlockStateCalls": GoField("blocks", _blocks),
    "TraceTransfers": GoField("traces_transfers", boolean),
    "Validation": GoField("validates", boolean),
    "ReturnFullTransactions": GoField("is_full", boolean),
}


def decode_simulation(value: Any) -> Simulation:
    """Decode a payload. null is an empty one.

    Raises: ValueError with geth's text; SimulationError for too many blocks or calls.
    """
    return Simulation(**decode_fields(value, "ethapi.simOpts", _FIELDS))


def encode_simulation(simulation: Simulation) -> dict[str, Any]:
    """Return a simulation as JSON that `decode_simulation` reads."""
    return {
        "BlockStateCalls": [_encode_block(block) for block in simulation.blocks],
        "TraceTransfers": simulation.traces_transfers,
        "Validation": simulation.validates,
        "ReturnFullTransactions": simulation.is_full,
    }


def _encode_block(block: BlockCalls) -> dict[str, Any]:
    found: dict[str, Any] = {
        "BlockOverrides": encode_block_overrides(block.overrides),
        "Calls": [encode_call(call) for call in block.calls],
    }
    if block.state_overrides:
        found["StateOverrides"] = encode_state_overrides(block.state_overrides)
    return found
