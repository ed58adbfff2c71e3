"""`eth_fillTransaction`: the fields that a caller has left out of a transaction.

Source: go-ethereum v1.17.10, internal/ethapi/api.go `FillTransaction`
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

from django.conf import settings

from evm.hexadecimal import to_hex
from evm.simulation.arguments import ZERO_ADDRESS, CallArguments
from evm.simulation.fees import needs_tip
from jsonrpc.params import Param
from nodeapi.arguments.calls import (
    contradicts_itself,
    decode_call,
    encode_call,
    sidecar_of,
)
from nodeapi.encoding import LATEST, BlockReference
from nodeapi.methods.catalog import registry
from nodeapi.methods.context import Context
from nodeapi.methods.eth_state import get_transaction_count
from nodeapi.methods.execution import run_task
from nodeapi.results.answers import Answer
from nodeapi.schemas import calls
from nodeapi.schemas.building import named
from nodeapi.schemas.transactions import FILLED_TRANSACTION

_PENDING = BlockReference(tag="pending")


class Unfilled(NamedTuple):
    """A transaction that may lack fields."""

    call: CallArguments
    contradicts_itself: bool
    sidecar: dict[str, list[bytes]]
    """What is given of `blobs`, `commitments` and `proofs`."""


def _unfilled(value: Any) -> Unfilled:
    """Decode a transaction that may lack fields. Raises: ValueError."""
    return Unfilled(decode_call(value), contradicts_itself(value), sidecar_of(value))


@registry.method(
    "eth_fillTransaction",
    params=[
        Param(
            "call",
            _unfilled,
            calls.CALL,
            summary="The fields of the transaction. Missing ones are filled in.",
        )
    ],
    result=named("transaction", FILLED_TRANSACTION),
    summary="Returns an unsigned transaction, with nonce, gas limit, fees and chain id "
    "filled in where the caller has left them out. With blobs, it has their commitments, "
    "proofs and hashes as well.",
    credits=10,
)
async def fill_transaction(context: Context, unfilled: Unfilled) -> Answer:
    """Return the RLP of a transaction with a zero signature, and its fields.

    Raises: ExecutionFailed with geth's errors.
    """
    call, network_id = unfilled.call, context.network.id
    if call.nonce is None:
        sender = call.sender or ZERO_ADDRESS
        nonce = await get_transaction_count(context, sender, _PENDING)
        call = replace(call, nonce=nonce)
    tip = 0
    if needs_tip(call):
        tip = await context.store.suggested_tip(network_id)
    arguments = {
        "call": encode_call(call),
        "gas_cap": settings.NODEAPI_CALL_GAS,
        "tip": tip,
        "contradicts_itself": unfilled.contradicts_itself,
        "sidecar": {
            name: [to_hex(each) for each in items]
            for name, items in unfilled.sidecar.items()
        },
    }
    head = await context.store.state_hash(network_id, LATEST)
    return await run_task(context, "fill", head, arguments)
