"""`eth_call` and `eth_estimateGas`: calls that are executed without a transaction.

Source: go-ethereum v1.17.2, internal/ethapi/api.go
"""

from __future__ import annotations

from typing import Any

from evm.simulation.arguments import CallArguments
from evm.simulation.overrides import BlockOverrides, StateOverrides
from jsonrpc.later import Later
from jsonrpc.params import Param
from nodeapi import conf, schemas
from nodeapi.call_arguments import (
    decode_block_overrides,
    decode_call,
    decode_state_overrides,
    encode_block_overrides,
    encode_call,
    encode_state_overrides,
)
from nodeapi.encoding import LATEST, BlockReference, block_number_or_hash
from nodeapi.methods.catalog import registry
from nodeapi.methods.context import Context
from nodeapi.methods.execution import run_task
from nodeapi.ports import Answer

CALL = Param(
    "call",
    decode_call,
    schemas.CALL,
    summary="The call. Missing fields have defaults; without fees, gas costs nothing.",
)
BLOCK = Param(
    "block",
    block_number_or_hash,
    schemas.BLOCK_PARAMETER,
    required=False,
    default=LATEST,
    summary="After which block; latest when it is left out.",
)
STATE_OVERRIDES = Param(
    "stateOverrides",
    decode_state_overrides,
    schemas.STATE_OVERRIDES,
    required=False,
    summary="Accounts with other values, by address.",
)
BLOCK_OVERRIDES = Param(
    "blockOverrides",
    decode_block_overrides,
    schemas.BLOCK_OVERRIDES,
    required=False,
    summary="Other properties of the block.",
)


@registry.method(
    "eth_call",
    params=[CALL, BLOCK, STATE_OVERRIDES, BLOCK_OVERRIDES],
    result=schemas.named("returnData", schemas.DATA),
    summary="Executes a call after a block, and returns its return data. The price rises "
    "by 1 credit for each further 500,000 gas that it uses.",
    credits=2,
)
def call(
    context: Context,
    asked: CallArguments,
    block: BlockReference,
    state_overrides: StateOverrides | None,
    block_overrides: BlockOverrides | None,
) -> Later[Answer]:
    """Return the return data of a call. Its changes are discarded."""
    arguments = call_task(asked, state_overrides, block_overrides)
    return context.store.resolve_state(context.network.id, block).then(
        lambda state: run_task(context, "call", state.block_hash, arguments)
    )


@registry.method(
    "eth_estimateGas",
    params=[CALL, BLOCK, STATE_OVERRIDES, BLOCK_OVERRIDES],
    result=schemas.named("gas", schemas.QUANTITY),
    summary="Returns a gas limit with which a transaction would succeed after a block. It "
    "may be up to 1.5 % too high.",
    credits=10,
)
def estimate_gas(
    context: Context,
    asked: CallArguments,
    block: BlockReference,
    state_overrides: StateOverrides | None,
    block_overrides: BlockOverrides | None,
) -> Later[Answer]:
    """Return the gas limit that a call needs, found by executing it several times."""
    arguments = call_task(asked, state_overrides, block_overrides)
    return context.store.resolve_state(context.network.id, block).then(
        lambda state: run_task(context, "estimate", state.block_hash, arguments)
    )


def call_task(
    asked: CallArguments,
    state_overrides: StateOverrides | None,
    block_overrides: BlockOverrides | None,
) -> dict[str, Any]:
    """Return the arguments of a task that executes one call."""
    arguments = {"call": encode_call(asked), "gas_cap": conf.call_gas()}
    if state_overrides:
        arguments["state"] = encode_state_overrides(state_overrides)
    if block_overrides is not None:
        arguments["block"] = encode_block_overrides(block_overrides)
    return arguments
