"""The payload of eth_simulateV1, between JSON and Python.

Source: go-ethereum v1.17.10, internal/ethapi/simulate.go, `simOpts` and `simBlock`
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eth_typing import Address
from eth_utils.address import to_checksum_address

from evm.simulation.overrides import AccountOverride
from evm.simulation.planning import BlockCalls, check_counts
from jsonrpc.text import kind
from nodeapi.arguments.calls import (
    ACCOUNT_FIELDS,
    BLOCK_FIELDS,
    decode_block_overrides,
    decode_call,
    decode_state_overrides,
    encode_block_overrides,
    encode_call,
    encode_state_overrides,
)
from nodeapi.encoding import address, boolean, go_mismatch, quoted
from nodeapi.go.fields import GoField, decode_fields, in_own_decoder, list_of


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


def _accounts(value: Any) -> dict[str, Any]:
    """Return overrides by address, of which only the addresses were checked."""
    if type(value) is not dict:
        go_type = "map[common.Address]json.RawMessage"
        raise ValueError(go_mismatch(kind(value), go_type))
    for account in value:
        address(account)
    return value


_BLOCK_FIELDS = {
    "BlockOverrides": GoField("overrides", lambda value: value),
    "StateOverrides": GoField("state_overrides", _accounts),
    "Calls": GoField("calls", list_of(decode_call, "[]ethapi.TransactionArgs")),
}
_BLOCK_TYPE = (
    "struct { BlockOverrides json.RawMessage; StateOverrides "
    "map[common.Address]json.RawMessage; Calls []ethapi.TransactionArgs }"
)


def _block(value: Any) -> BlockCalls:
    """Decode a block. As in geth, the calls are decoded before the overrides.

    Raises: ValueError, whose text lacks the field of an override's value.
    """
    try:
        found = decode_fields(value, _BLOCK_TYPE, _BLOCK_FIELDS)
        if "overrides" in found:
            _check_names(found["overrides"], BLOCK_FIELDS, "block override")
            found["overrides"] = decode_block_overrides(found["overrides"])
        if "state_overrides" in found:
            accounts: dict[Address, AccountOverride] = {}
            for account, given in found["state_overrides"].items():
                name = to_checksum_address(address(account))
                _check_names(given, ACCOUNT_FIELDS, f"state override for {name}")
                accounts |= decode_state_overrides({account: given})
            found["state_overrides"] = accounts
    except ValueError as error:
        raise ValueError(in_own_decoder(str(error), "simBlock")) from None
    return BlockCalls(**found)


def _check_names(given: Any, fields: Mapping[str, GoField], what: str) -> None:
    """Check that each member of overrides is a field, and each field is given once.

    what: describes the overrides. Raises: ValueError.
    """
    names = {name.casefold() for name in fields}
    seen: dict[str, str] = {}
    for name in sorted(given if type(given) is dict else ()):
        folded = name.casefold()
        if folded not in names:
            raise ValueError(f"unknown field {quoted(name)} in {what}")
        if folded in seen:
            keys = f"{quoted(seen[folded])} and {quoted(name)}"
            raise ValueError(f"keys {keys} in {what} name the same field")
        seen[folded] = name


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
