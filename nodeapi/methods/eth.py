"""`eth_`: blocks, transactions and state."""

from __future__ import annotations

from collections.abc import Awaitable

from jsonrpc.errors import InvalidParams
from jsonrpc.params import Param
from nodeapi import schemas
from nodeapi.encoding import (
    LATEST,
    BlockReference,
    address,
    block_number,
    block_number_or_hash,
    boolean,
    data,
    hash32,
    index,
    quantity,
    slots_by_address,
    storage_key,
    text,
)
from nodeapi.errors import TooManySlots
from nodeapi.methods.catalog import registry
from nodeapi.methods.context import Context
from nodeapi.ports import MAX_SLOTS, Document

_BLOCK_HASH = Param("blockHash", hash32, schemas.HASH32)
_FULL = Param(
    "fullTransactions",
    boolean,
    schemas.BOOLEAN,
    summary="true: transactions as objects; false: their hashes.",
)
_BLOCK = Param(
    "block",
    block_number_or_hash,
    schemas.BLOCK_PARAMETER,
    required=False,
    default=LATEST,
    summary="After which block; latest when it is left out.",
)


@registry.method(
    "eth_chainId",
    result=schemas.named("chainId", schemas.QUANTITY),
    encode=quantity,
    summary="Returns the chain id of the network.",
)
def chain_id(context: Context) -> int:
    """Return the chain id by which transactions are signed."""
    return context.network.chain_id


@registry.method(
    "eth_blockNumber",
    result=schemas.named("blockNumber", schemas.QUANTITY),
    encode=quantity,
    summary="Returns the number of the newest block.",
)
def get_block_number(context: Context) -> int | Awaitable[int]:
    """Return the head's number."""
    return context.store.head_number(context.network.id)


@registry.method(
    "eth_syncing",
    result=schemas.named("syncing", schemas.BOOLEAN),
    summary="Returns whether blocks are still missing: always false.",
)
def syncing(context: Context) -> bytes:
    """Return false: a block that is visible is complete."""
    return b"false"


@registry.method(
    "eth_getBlockByHash",
    params=[_BLOCK_HASH, _FULL],
    result=schemas.named("block", schemas.BLOCK_OR_NULL),
    summary="Returns the block with a hash, null when there is none.",
)
def get_block_by_hash(context: Context, block_hash: bytes, full: bool) -> Document:
    """Return a block, canonical or not."""
    network = context.network
    return context.store.block_by_hash(
        network.id, block_hash, full, network.emit_total_difficulty
    )


@registry.method(
    "eth_getBlockByNumber",
    params=[Param("block", block_number, schemas.BLOCK_NUMBER_OR_TAG), _FULL],
    result=schemas.named("block", schemas.BLOCK_OR_NULL),
    summary="Returns the block with a number or tag, null when there is none.",
)
def get_block_by_number(
    context: Context, number_or_tag: int | str, full: bool
) -> Document:
    """Return a canonical block."""
    network = context.network
    return context.store.block_by_number(
        network.id, number_or_tag, full, network.emit_total_difficulty
    )


@registry.method(
    "eth_getTransactionByBlockHashAndIndex",
    params=[_BLOCK_HASH, Param("transactionIndex", index, schemas.QUANTITY)],
    result=schemas.named("transaction", schemas.TRANSACTION_OR_NULL),
    summary="Returns the transaction at a position in a block, null when there is none.",
)
def get_transaction_by_block_hash_and_index(
    context: Context, block_hash: bytes, transaction_index: int
) -> Document:
    """Return a transaction of a block, canonical or not."""
    return context.store.transaction_by_block_hash_and_index(
        context.network.id, block_hash, transaction_index
    )


@registry.method(
    "eth_getStorageAt",
    params=[
        Param("address", address, schemas.ADDRESS),
        Param("storagePosition", text, schemas.STORAGE_POSITION),
        _BLOCK,
    ],
    encode=data,
    result=schemas.named("value", schemas.HASH32),
    summary="Returns the value at a storage position of an address.",
)
def get_storage_at(
    context: Context, account: bytes, position: str, block: BlockReference
) -> bytes | Awaitable[bytes]:
    """Return a word of 32 bytes, zero when nothing was ever stored there."""
    try:
        slot = storage_key(position)
    except ValueError as error:
        return _refuse_position(context, block, str(error))
    return context.store.storage_at(context.network.id, account, slot, block)


async def _refuse_position(
    context: Context, block: BlockReference, fault: str
) -> bytes:
    """Raise InvalidParams, unless the block is at fault: geth resolves it first."""
    await context.store.resolve_state(context.network.id, block)
    raise InvalidParams(fault)


@registry.method(
    "eth_getStorageValues",
    params=[
        Param("positions", slots_by_address, schemas.POSITIONS_BY_ADDRESS),
        _BLOCK,
    ],
    result=schemas.named("values", schemas.POSITIONS_BY_ADDRESS),
    summary="Returns the values at many storage positions after one block.",
    credits=10,
)
async def get_storage_values(
    context: Context, positions: dict[bytes, list[int]], block: BlockReference
) -> bytes:
    """Return each address with its words, in the order of the positions."""
    slots = [(account, slot) for account, many in positions.items() for slot in many]
    if len(slots) > MAX_SLOTS:
        raise TooManySlots(MAX_SLOTS)
    if not slots:
        raise InvalidParams("empty request")
    words = iter(await context.store.storage_values(context.network.id, slots, block))
    members = [
        data(account) + b":[" + b",".join([data(next(words)) for _ in many]) + b"]"
        for account, many in positions.items()
    ]
    return b"{" + b",".join(members) + b"}"
