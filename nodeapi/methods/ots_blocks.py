"""`ots_`: blocks, without the parts that Otterscan does not show.

Source: erigon rpc/jsonrpc/otterscan_block_details.go, otterscan_api.go
"""

from __future__ import annotations

import re
from contextlib import aclosing
from typing import Any

import orjson

from jsonrpc.later import all_of
from jsonrpc.params import Param
from jsonrpc.stream import Stream
from nodeapi.encoding import hash32
from nodeapi.methods.catalog import registry
from nodeapi.methods.context import Context
from nodeapi.methods.numbers import number, number_or_tag
from nodeapi.methods.rewards import block_rewards
from nodeapi.results.answers import Answer
from nodeapi.schemas.building import named
from nodeapi.schemas.otterscan import BLOCK_DETAILS_OR_NULL, BLOCK_PAGE_OR_NULL
from nodeapi.schemas.values import BLOCK_NUMBER_OR_TAG, HASH32, NUMBER
from postgres.errors import Unavailable

_BLOCK = Param("block", number_or_tag, BLOCK_NUMBER_OR_TAG)

MAX_PAGE = 255
"""Maximum of page number and page size, which are bytes in Erigon."""

_FEES = re.compile(
    rb'"effectiveGasPrice":"0x([0-9a-f]+)","contractAddress":(?:null|"0x[0-9a-f]{40}")'
    rb',"cumulativeGasUsed":"0x[0-9a-f]+","gasUsed":"0x([0-9a-f]+)"'
)
"""Matches the price and the gas of a receipt."""
_FEES_BYTES = 512
"""More than the longest match."""

_INPUT = b'"input":"0x'
_SHOWN_DIGITS = 8
"""Digits of an input that are shown."""

_BLOOM = b',"logsBloom":'


def _small(value: Any) -> int:
    """Decode a number up to 255."""
    found = number(value)
    if found > MAX_PAGE:
        raise ValueError(
            f"json: cannot unmarshal number {found} into Go value of type uint8"
        )
    return found


@registry.method(
    "ots_getBlockDetails",
    params=[_BLOCK],
    result=named("details", BLOCK_DETAILS_OR_NULL),
    summary="Returns a block without its transactions, with its issuance and the sum of "
    "its fees.",
    credits=5,
)
async def get_block_details(context: Context, number_or_tag: int | str) -> bytes | None:
    """Return the details of a canonical block, None if there is none."""
    network_id = context.network.id
    block_hash = await context.store.canonical_hash(network_id, number_or_tag)
    if block_hash is None:
        return None
    return await get_block_details_by_hash(context, block_hash)


@registry.method(
    "ots_getBlockDetailsByHash",
    params=[Param("blockHash", hash32, HASH32)],
    result=named("details", BLOCK_DETAILS_OR_NULL),
    summary="Returns the same as ots_getBlockDetails for the block with a hash.",
    credits=5,
)
async def get_block_details_by_hash(
    context: Context, block_hash: bytes
) -> bytes | None:
    """Return the details of a block, canonical or not, None if there is none."""
    block = await _block(context, block_hash)
    if block is None:
        return None
    del block["transactions"]
    _, rewards = await block_rewards(context, block_hash)
    uncles = sum(reward.value for reward in rewards if reward.is_uncle)
    total = sum(reward.value for reward in rewards)
    receipts = await context.store.block_receipts(
        context.network.id, block_hash, owner=context.customer
    )
    if receipts is None:
        return None
    return orjson.dumps(
        {
            "block": block,
            "issuance": {
                "blockReward": hex(total - uncles),
                "uncleReward": hex(uncles),
                "issuance": hex(total),
            },
            "totalFees": hex(await total_fees(receipts)),
        }
    )


@registry.method(
    "ots_getBlockTransactions",
    params=[
        _BLOCK,
        Param("pageNumber", _small, NUMBER),
        Param("pageSize", _small, NUMBER),
    ],
    result=named("page", BLOCK_PAGE_OR_NULL),
    summary="Returns a page of a block's transactions and receipts. Page 0 has the last "
    "transactions of the block.",
    credits=5,
)
async def get_block_transactions(
    context: Context, number_or_tag: int | str, page: int, size: int
) -> bytes | None:
    """Return a page in the order of the block, None if there is no such block.

    Inputs are cut to 4 bytes. Receipts have no logs.
    """
    store, network_id = context.store, context.network.id
    block_hash = await store.canonical_hash(network_id, number_or_tag)
    block = None if block_hash is None else await _block(context, block_hash)
    if block_hash is None or block is None:
        return None
    hashes = block.pop("transactions")
    end = max(len(hashes) - page * size, 0)
    places = range(max(end - size, 0), end)
    documents = await all_of(
        [
            store.transaction_by_block_hash_and_index(network_id, block_hash, index)
            for index in places
        ]
    )
    receipts = await all_of(
        [
            store.receipt(network_id, bytes.fromhex(hashes[index][2:]))
            for index in places
        ]
    )
    cut = [_with_short_input(document or b"null") for document in documents]
    short = [await _without_logs(receipt) for receipt in receipts]
    return b'{"fullblock":%b,"transactions":[%b]},"receipts":[%b]}' % (
        orjson.dumps(block).removesuffix(b"}"),
        b",".join(cut),
        b",".join(short),
    )


def _with_short_input(document: bytes) -> bytes:
    """Return a transaction object, or null, with the beginning of its input."""
    _, has_input, digits = document.partition(_INPUT)
    size = digits.find(b'"')
    if not has_input or size <= _SHOWN_DIGITS:
        return document
    shown = len(document) - len(digits) + _SHOWN_DIGITS
    return document[:shown] + digits[size:]


async def _block(context: Context, block_hash: bytes) -> dict[str, Any] | None:
    """Return a block object with transaction hashes, their number, and no bloom."""
    document = await context.store.block_by_hash(
        context.network.id, block_hash, False, context.network.emit_total_difficulty
    )
    if document is None:
        return None
    block: dict[str, Any] = orjson.loads(document)
    block["transactionCount"] = len(block["transactions"])
    block["logsBloom"] = None
    return block


async def total_fees(receipts: Answer) -> int:
    """Return the sum in wei that the transactions of a block paid for gas.

    receipts: a list of receipt objects. A stream is closed.
    """
    if not isinstance(receipts, Stream):
        return sum(
            int(price, 16) * int(gas, 16) for price, gas in _FEES.findall(receipts)
        )
    total, rest = 0, b""
    async with aclosing(receipts):
        async for part in receipts:
            rest += part
            end = 0
            for found in _FEES.finditer(rest):
                total += int(found[1], 16) * int(found[2], 16)
                end = found.end()
            rest = rest[max(end, len(rest) - _FEES_BYTES) :]
    return total


async def _without_logs(receipt: Answer | None) -> bytes:
    """Return a receipt object without its logs, which are its last members."""
    if receipt is None:
        raise Unavailable("the block was removed by a reorganisation")
    if isinstance(receipt, Stream):
        begin = b""
        async with aclosing(receipt):
            async for part in receipt:
                begin += part
                if _BLOOM in begin:
                    break
    else:
        begin = receipt
    return begin[: begin.index(_BLOOM)] + _BLOOM + b'null,"logs":null}'
