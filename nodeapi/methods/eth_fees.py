"""`eth_`: fees of the newest blocks, and suggestions for new transactions.

Source: go-ethereum internal/ethapi/api.go, eth/gasprice
"""

from __future__ import annotations

import re
from math import isinf
from typing import Any

from jsonrpc.later import Later
from jsonrpc.params import Param, Schema
from jsonrpc.source import Text
from jsonrpc.text import Number, dump, kind
from nodeapi.encoding import block_number, quantity, quantity_or_null
from nodeapi.errors.arguments import InvalidPercentile, RequestBeyondHead
from nodeapi.errors.blocks import TaggedBlockNotFound
from nodeapi.fees.history import MAX_BLOCKS, NO_BLOCKS, check_percentiles
from nodeapi.methods.catalog import registry
from nodeapi.methods.context import Context
from nodeapi.schemas.building import array_of, named, object_with
from nodeapi.schemas.values import (
    BLOCK_NUMBER_OR_TAG,
    QUANTITY,
    QUANTITY_OR_NULL,
    UNSIGNED,
)
from nodeapi.store.base import kept_from, require_stored

BLOCK_COUNT: Schema = {"oneOf": [QUANTITY, UNSIGNED]}

PERCENTILES: Schema = {
    "oneOf": [
        {
            "type": "array",
            "items": {"type": "number", "minimum": 0, "maximum": 100},
            "maxItems": 100,
        },
        {"type": "null"},
    ]
}

_RATIOS: Schema = {"type": "array", "items": {"type": "number"}}

FEE_HISTORY = object_with(
    {
        "oldestBlock": QUANTITY,
        "reward": array_of(array_of(QUANTITY)),
        "baseFeePerGas": array_of(QUANTITY),
        "gasUsedRatio": {"oneOf": [_RATIOS, {"type": "null"}]},
        "baseFeePerBlobGas": array_of(QUANTITY),
        "blobGasUsedRatio": _RATIOS,
    },
    optional="reward baseFeePerGas baseFeePerBlobGas blobGasUsedRatio",
)


_HEXADECIMAL = re.compile("0[xX]([0-9a-fA-F]{1,100})")
_DECIMAL = re.compile("[0-9]{1,100}")
_MAX_COUNT = 2**64 - 1


def block_count(value: Any, source: Text | None = None) -> int:
    """Decode a number of blocks: a JSON number, or decimal or hexadecimal digits.

    source: the argument's text, for the error about a number such as 1e2.
    """
    text = value if type(value) is str else _json_text(value)
    if type(value) is float and source is not None:
        text = source() or text
    count: int | None = None
    if not text:
        count = 0
    elif found := _HEXADECIMAL.fullmatch(text):
        count = int(found[1], 16)
    elif _DECIMAL.fullmatch(text):
        count = int(text)
    if count is None or count > _MAX_COUNT:
        raise ValueError(f"invalid hex or decimal integer {dump(text).decode()}")
    return count


def percentiles(value: Any) -> tuple[float, ...]:
    """Decode a list of percentiles."""
    go_error = "json: cannot unmarshal {} into Go value of type {}"
    if type(value) is not list:
        raise ValueError(go_error.format(kind(value), "[]float64"))
    for each in value:
        if kind(each) not in ("number", "null"):
            raise ValueError(go_error.format(kind(each), "float64"))
    found = tuple(0.0 if each is None else float(_json_text(each)) for each in value)
    for each, number in zip(value, found, strict=True):
        if isinf(number):
            raise ValueError(go_error.format(f"number {_json_text(each)}", "float64"))
    return found


def _json_text(value: Any) -> str:
    """Return a value as JSON, or its type if it contains numbers of unusual size."""
    if type(value) is Number:
        return value.text
    try:
        return dump(value).decode()
    except TypeError:
        return kind(value)


@registry.method(
    "eth_gasPrice",
    encode=quantity,
    result=named("gasPrice", QUANTITY),
    summary="Returns a price for a legacy transaction, in wei per gas.",
)
async def get_gas_price(context: Context) -> int:
    """Return the suggested tip plus the head's base fee."""
    tip = await context.store.suggested_tip(context.network.id)
    fees = await context.store.head_fees(context.network.id)
    return tip + (fees.base_fee or 0)


@registry.method(
    "eth_maxPriorityFeePerGas",
    encode=quantity,
    result=named("maxPriorityFeePerGas", QUANTITY),
    summary="Returns a tip for a transaction, in wei per gas, computed from the tips of "
    "the newest blocks.",
)
def get_max_priority_fee_per_gas(context: Context) -> Later[int]:
    """Return the suggested tip."""
    return context.store.suggested_tip(context.network.id)


@registry.method(
    "eth_baseFee",
    encode=quantity_or_null,
    result=named("baseFee", QUANTITY_OR_NULL),
    summary="Returns the base fee of the next block in wei per gas, null before London.",
)
def get_base_fee(context: Context) -> Later[int | None]:
    """Return the base fee of the block after the head."""
    fees = context.store.head_fees(context.network.id)
    return fees.then(lambda found: found.next_base_fee)


@registry.method(
    "eth_blobBaseFee",
    encode=quantity_or_null,
    result=named("blobBaseFee", QUANTITY_OR_NULL),
    summary="Returns the head's base fee in wei per blob gas, null before Cancun.",
)
def get_blob_base_fee(context: Context) -> Later[int | None]:
    """Return the price per blob gas in the head."""
    fees = context.store.head_fees(context.network.id)
    return fees.then(lambda found: found.blob_fee)


@registry.method(
    "eth_feeHistory",
    params=[
        Param("blockCount", block_count, BLOCK_COUNT, reads_text=True),
        Param("newestBlock", block_number, BLOCK_NUMBER_OR_TAG),
        Param("rewardPercentiles", percentiles, PERCENTILES),
    ],
    result=named("feeHistory", FEE_HISTORY),
    summary="Returns base fees, gas used and tips of consecutive blocks, and the base "
    "fees of the next block. There are at most 1024 blocks.",
    credits=10,
)
async def get_fee_history(
    context: Context,
    count: int,
    newest: int | str,
    rewards_at: tuple[float, ...],
) -> bytes:
    """Return the history of fees. The pending block counts as a block without content."""
    if not count:
        return NO_BLOCKS
    fault = check_percentiles(rewards_at)
    if fault is not None:
        raise InvalidPercentile(fault)
    count = min(count, MAX_BLOCKS)
    view = await context.store.head(context.network.id)
    head = await context.store.head_number(context.network.id)
    if newest == "pending":
        last = head + 1
    else:
        last = await _number(context, newest, head)
        if last > head:
            raise RequestBeyondHead(last, head)
    require_stored(view, last)
    first = max(last - count + 1, 0)
    if last:
        first = max(first, kept_from(view))
    history = await context.store.fee_history(view, first, last, rewards_at)
    return NO_BLOCKS if history is None else history


async def _number(context: Context, number_or_tag: int | str, head: int) -> int:
    """Return the number of the block with a number or tag."""
    if isinstance(number_or_tag, int):
        return number_or_tag
    if number_or_tag == "latest":
        return head
    store, network_id = context.store, context.network.id
    block_hash = await store.canonical_hash(network_id, number_or_tag)
    header = None if block_hash is None else await store.header(network_id, block_hash)
    if header is None:
        raise TaggedBlockNotFound(number_or_tag)
    return header.number
