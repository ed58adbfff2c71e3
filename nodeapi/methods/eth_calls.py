"""`eth_call` and its relatives: calls that are executed without a transaction.

Source: go-ethereum v1.17.10, internal/ethapi/api.go
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson
from django.conf import settings
from eth_typing import Address

from evm.simulation.arguments import CallArguments
from evm.simulation.fees import has_fees, needs_tip
from jsonrpc.errors import RpcError
from jsonrpc.later import Later
from jsonrpc.params import Param
from nodeapi.arguments.calls import (
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
from nodeapi.methods.execution import digest_of, run_task
from nodeapi.results.answers import Answer
from nodeapi.schemas import calls
from nodeapi.schemas.building import named
from nodeapi.schemas.values import BLOCK_PARAMETER, DATA, QUANTITY

_asked: dict[bytes, AskedCall] = {}
"""Calls by their JSON. Callers send the same ones again and again, and decoding takes longer
than the rest of an answer that is cached."""
_ASKED_COUNT, _ASKED_BYTES = 4096, 512


class BlobFeeWithoutBlobs(RpcError):
    """Raised when a call has a fee for blobs, but no blobs."""

    remedy = "Leave maxFeePerBlobGas out, or pass blobVersionedHashes."
    text = "maxFeePerBlobGas specified without blobVersionedHashes"


@dataclass(frozen=True, slots=True)
class AskedCall:
    """A decoded call without overrides, as a task."""

    arguments: CallArguments
    task: dict[str, Any]
    """The arguments of a task that executes the call."""
    digest: bytes
    """`digest_of(task)`."""

    @property
    def to(self) -> Address | None:
        """The receiver, None for a creation."""
        return self.arguments.to


def asked_call(value: Any) -> AskedCall:
    """Decode a call; the result may be shared. Raises: ValueError."""
    try:
        text = orjson.dumps(value)
    # The JSON has large numbers or lone surrogates, perhaps in ignored members.
    except TypeError:
        return _decode_asked(value)
    found = _asked.get(text)
    if found is None:
        found = _decode_asked(value)
        if len(text) <= _ASKED_BYTES:
            if len(_asked) >= _ASKED_COUNT:
                _asked.clear()
            _asked[text] = found
    return found


def _decode_asked(value: Any) -> AskedCall:
    arguments = decode_call(value)
    task = {"call": encode_call(arguments), "gas_cap": settings.NODEAPI_CALL_GAS}
    return AskedCall(arguments, task, digest_of(task))


def given_state(value: Any) -> orjson.Fragment | None:
    """Decode overrides of the state; return them as a task's JSON, None if there are none.

    Both takes long for megabytes, but the decoders of a long body run in a thread.

    Raises: ValueError.
    """
    overrides = decode_state_overrides(value)
    return fragment(encode_state_overrides(overrides)) if overrides else None


def given_block(value: Any) -> orjson.Fragment:
    """Decode overrides of a block; return them as a task's JSON. Raises: ValueError."""
    return fragment(encode_block_overrides(decode_block_overrides(value)))


def fragment(value: Any) -> orjson.Fragment:
    """Return JSON that becomes a part of a task's arguments; equal values equal bytes."""
    return orjson.Fragment(orjson.dumps(value, option=orjson.OPT_SORT_KEYS))


CALL = Param(
    "call",
    asked_call,
    calls.CALL,
    summary="The call. Missing fields have defaults; without fees, gas costs nothing.",
)
BLOCK = Param(
    "block",
    block_number_or_hash,
    BLOCK_PARAMETER,
    required=False,
    default=LATEST,
    summary="The block after which the call is executed; latest by default. The state "
    "at pending is that at latest.",
)
STATE_OVERRIDES = Param(
    "stateOverrides",
    given_state,
    calls.STATE_OVERRIDES,
    required=False,
    summary="Values that replace those of accounts, by address.",
)
BLOCK_OVERRIDES = Param(
    "blockOverrides",
    given_block,
    calls.BLOCK_OVERRIDES,
    required=False,
    summary="Values that replace those of the block.",
)


@registry.method(
    "eth_call",
    params=[CALL, BLOCK, STATE_OVERRIDES, BLOCK_OVERRIDES],
    result=named("returnData", DATA),
    summary="Executes a call after a block, and returns its return data. The price rises "
    "by 1 credit for each further 500,000 gas, and for each millisecond of processor "
    "time beyond 100.",
    credits=2,
)
def call(
    context: Context,
    asked: AskedCall,
    block: BlockReference,
    state_overrides: orjson.Fragment | None,
    block_overrides: orjson.Fragment | None,
) -> Later[Answer]:
    """Return the return data of a call. Its changes are discarded."""
    return _run(context, "call", asked, block, state_overrides, block_overrides)


@registry.method(
    "eth_estimateGas",
    params=[CALL, BLOCK, STATE_OVERRIDES, BLOCK_OVERRIDES],
    result=named("gas", QUANTITY),
    summary="Returns a gas limit with which a transaction would succeed after a block. It "
    "may be up to 1.5 % too high.",
    credits=10,
)
def estimate_gas(
    context: Context,
    asked: AskedCall,
    block: BlockReference,
    state_overrides: orjson.Fragment | None,
    block_overrides: orjson.Fragment | None,
) -> Later[Answer]:
    """Return the gas limit that a call needs, found by executing it several times."""
    return _run(context, "estimate", asked, block, state_overrides, block_overrides)


@registry.method(
    "eth_createAccessList",
    params=[CALL, BLOCK, STATE_OVERRIDES],
    result=named("accessList", calls.CREATED_ACCESS_LIST),
    summary="Returns the accounts and slots that a transaction would touch after a block, "
    "and the gas that it uses with this access list.",
    credits=10,
)
async def create_access_list(
    context: Context,
    asked: AskedCall,
    block: BlockReference,
    state_overrides: orjson.Fragment | None,
) -> Answer:
    """Return the access list of a transaction, whose sender pays for gas if fees are given.

    Raises: BlobFeeWithoutBlobs.
    """
    _require_blobs(asked.arguments)
    network_id = context.network.id
    block_hash = await context.store.state_hash(network_id, block)
    arguments = call_task(asked, state_overrides, None)
    arguments["tip"] = 0
    if has_fees(asked.arguments) and needs_tip(asked.arguments):
        arguments["tip"] = await context.store.suggested_tip(network_id)
    return await run_task(context, "access_list", block_hash, arguments)


def call_task(
    asked: AskedCall,
    state_overrides: orjson.Fragment | None,
    block_overrides: orjson.Fragment | None,
) -> dict[str, Any]:
    """Return the arguments of a task that executes one call with overrides."""
    arguments = dict(asked.task)
    if state_overrides is not None:
        arguments["state"] = state_overrides
    if block_overrides is not None:
        arguments["block"] = block_overrides
    return arguments


def _run(
    context: Context,
    task: str,
    asked: AskedCall,
    block: BlockReference,
    state_overrides: orjson.Fragment | None,
    block_overrides: orjson.Fragment | None,
) -> Later[Answer]:
    """Return the result of a task that executes one call after a block.

    Raises: BlobFeeWithoutBlobs.
    """
    _require_blobs(asked.arguments)
    arguments, digest = asked.task, asked.digest
    if state_overrides is not None or block_overrides is not None:
        arguments = call_task(asked, state_overrides, block_overrides)
        digest = digest_of(arguments)
    block_hash = context.store.state_hash(context.network.id, block)
    return block_hash.then(_run_after, context, task, arguments, digest)


def _require_blobs(call: CallArguments) -> None:
    """Check that a call with a fee for blobs has blobs. Raises: BlobFeeWithoutBlobs."""
    if call.max_fee_per_blob_gas is not None and not call.blob_versioned_hashes:
        raise BlobFeeWithoutBlobs


def _run_after(
    block_hash: bytes, context: Context, task: str, arguments: Any, digest: bytes
) -> Later[Answer]:
    return run_task(context, task, block_hash, arguments, digest)
