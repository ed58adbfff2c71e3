"""The task of eth_createAccessList.

Source: go-ethereum v1.17.10, internal/ethapi/api.go `AccessList`
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import orjson

from evm.chain_config import InvalidChainConfig
from evm.checks import CallRejected
from evm.signatures import keccak
from evm.signing import TransactionFields, encode_unsigned
from evm.simulation.access_list import authorities, create_access_list, receiver
from evm.simulation.arguments import (
    ZERO_ADDRESS,
    CallArguments,
    CallMessage,
    InvalidCall,
    call_message,
)
from evm.simulation.fees import fill_fees, has_fees
from evm.simulation.overrides import InvalidOverride, apply_state_overrides
from evm.simulation.world import WrappingWorld
from evm.transactions import ACCESS_LIST
from nodeapi.arguments.calls import (
    decode_call,
    decode_state_overrides,
    encode_access_list,
)
from nodeapi.tracing.context import SERVER_ERROR, TaskFailed, TaskResult

if TYPE_CHECKING:
    from evm.simulation.block import CallBlock
    from nodeapi.tracing.context import Task, TaskContext


def access_list(context: TaskContext, arguments: dict[str, Any]) -> TaskResult:
    """Return the access list of a call, and the gas that it uses with the list.

    arguments: `call`, `gas_cap`, `tip` in wei per gas as a number, and `state` for
        overrides, which is optional.

    Raises: TaskFailed.
    """
    asked = decode_call(arguments["call"])
    try:
        state = context.state
        block, world = state.call_block, WrappingWorld(state.state)
        # geth does not know the precompiled contracts here, hence none can be moved.
        apply_state_overrides(world, decode_state_overrides(arguments.get("state")), {})
        if has_fees(asked):  # otherwise gas costs nothing
            fill_fees(asked, block, arguments["tip"])
        if asked.nonce is None:
            asked.nonce = world.get_nonce(asked.sender or ZERO_ADDRESS)
        call = call_message(
            asked,
            chain_id=block.config.chain_id,
            base_fee=state.header.base_fee_per_gas,
            gas_cap=arguments["gas_cap"],
        )
        excluded = _excluded(call, block)
    except (InvalidCall, InvalidChainConfig, InvalidOverride) as error:
        raise TaskFailed(SERVER_ERROR, str(error)) from error
    try:
        result, gas_used = create_access_list(world, block, call, excluded, math.inf)
    except CallRejected as error:
        name = _unsigned_hash(asked, call, block).hex()
        text = f"failed to apply transaction: 0x{name} err: {error.text}"
        raise TaskFailed(SERVER_ERROR, text) from error
    answer: dict[str, Any] = {"accessList": encode_access_list(call.access_list)}
    if result.error is not None:
        answer["error"] = result.error
    answer["gasUsed"] = hex(result.gas_used)
    return TaskResult(orjson.dumps(answer), gas_used)


def _excluded(call: CallMessage, block: CallBlock) -> set[bytes]:
    """Return the addresses that are only listed for their slots."""
    return {
        call.sender,
        receiver(call),
        *block.fork.precompiles,
        *authorities(call.authorization_list, block.config.chain_id),
    }


def _unsigned_hash(asked: CallArguments, call: CallMessage, block: CallBlock) -> bytes:
    """Return the hash of the call as a transaction with a zero signature."""
    has_price = asked.gas_price is not None or block.base_fee is None
    fields = TransactionFields(
        type=ACCESS_LIST if has_price else call.type,
        chain_id=block.config.chain_id,
        nonce=call.nonce,
        gas=call.gas,
        gas_price=call.gas_price,
        max_fee_per_gas=call.max_fee_per_gas,
        max_priority_fee_per_gas=call.max_priority_fee_per_gas,
        to=call.to,
        value=call.value,
        data=call.data,
        access_list=call.access_list,
        max_fee_per_blob_gas=call.max_fee_per_blob_gas or 0,
        blob_versioned_hashes=call.blob_versioned_hashes,
        authorization_list=call.authorization_list,
    )
    return keccak(encode_unsigned(fields))


TASKS: dict[str, Task] = {"access_list": access_list}
