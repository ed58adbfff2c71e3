"""`eth_`: blocks, transactions and state."""

from __future__ import annotations

from functools import partial

from jsonrpc.errors import InvalidParams
from jsonrpc.later import Later
from jsonrpc.params import Param
from nodeapi.documents.pending import PendingBlock
from nodeapi.encoding import (
    BlockReference,
    address,
    block_number,
    boolean,
    data,
    hash32,
    index,
    quantity,
    slots_by_address,
    storage_key,
    text,
)
from nodeapi.errors.arguments import TooManySlots
from nodeapi.methods.catalog import registry
from nodeapi.methods.context import Context
from nodeapi.methods.eth_state import STATE_BLOCK
from nodeapi.results.answers import Document
from nodeapi.schemas.blocks import BLOCK_OR_NULL
from nodeapi.schemas.building import named
from nodeapi.schemas.network import SYNCING
from nodeapi.schemas.state import POSITIONS_BY_ADDRESS, STORAGE_POSITION
from nodeapi.schemas.transactions import TRANSACTION_OR_NULL
from nodeapi.schemas.values import (
    ADDRESS,
    BLOCK_NUMBER_OR_TAG,
    BOOLEAN,
    HASH32,
    QUANTITY,
)
from nodeapi.store.states import MAX_SLOTS

_BLOCK_HASH = Param("blockHash", hash32, HASH32)
_FULL = Param(
    "fullTransactions",
    boolean,
    BOOLEAN,
    summary="true: transactions as objects; false: their hashes.",
)


@registry.method(
    "eth_chainId",
    result=named("chainId", QUANTITY),
    encode=quantity,
    summary="Returns the chain id of the network.",
)
def chain_id(context: Context) -> int:
    """Return the chain id by which transactions are signed."""
    return context.network.chain_id


@registry.method(
    "eth_blockNumber",
    result=named("blockNumber", QUANTITY),
    encode=quantity,
    summary="Returns the number of the newest block.",
)
def get_block_number(context: Context) -> Later[int]:
    """Return the head's number."""
    return context.store.head_number(context.network.id)


@registry.method(
    "eth_syncing",
    result=named("syncing", SYNCING),
    summary="Returns false, or an object while the network is behind its upstream nodes.",
)
def syncing(context: Context) -> bytes | Later[bytes]:
    """Return geth's object while blocks are missing that upstreams have."""
    network = context.network
    if not network.upstreams and not network.is_preparing:
        return b"false"  # a block that is visible is complete
    return context.store.syncing(network.id)


@registry.method(
    "eth_getBlockByHash",
    params=[_BLOCK_HASH, _FULL],
    result=named("block", BLOCK_OR_NULL),
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
    params=[Param("block", block_number, BLOCK_NUMBER_OR_TAG), _FULL],
    result=named("block", BLOCK_OR_NULL),
    summary="Returns the block with a number or tag, null when there is none. pending is "
    "an upstream node's pending block, or latest on a network without upstreams.",
)
def get_block_by_number(
    context: Context, number_or_tag: int | str, full: bool
) -> Document:
    """Return a canonical block, or the pending block of an upstream."""
    network = context.network
    if number_or_tag == "pending" and (relay := context.pending) is not None:
        found = Later.from_coroutine(relay.pending_block(network, context.payer))
        return found.then(partial(_pending_document, full))
    return context.store.block_by_number(
        network.id, number_or_tag, full, network.emit_total_difficulty
    )


def _pending_document(full: bool, block: PendingBlock | None) -> bytes | None:
    if block is None:
        return None
    return block.full if full else block.hashes


@registry.method(
    "eth_getTransactionByBlockHashAndIndex",
    params=[_BLOCK_HASH, Param("transactionIndex", index, QUANTITY)],
    result=named("transaction", TRANSACTION_OR_NULL),
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
        Param("address", address, ADDRESS),
        Param("storagePosition", text, STORAGE_POSITION),
        STATE_BLOCK,
    ],
    encode=data,
    result=named("value", HASH32),
    summary="Returns the value at a storage position of an address.",
)
def get_storage_at(
    context: Context, account: bytes, position: str, block: BlockReference
) -> Later[bytes]:
    """Return a slot's value as 32 bytes, zero if it was never written."""
    try:
        slot = storage_key(position)
    except ValueError as error:
        return _refuse_position(context, block, str(error))
    return context.store.storage_at(context.network.id, account, slot, block)


def _refuse_position(
    context: Context, block: BlockReference, fault: str
) -> Later[bytes]:
    """Fail with InvalidParams, or with the block's error: geth looks it up first."""

    def refuse(_: object) -> bytes:
        raise InvalidParams(fault)

    return context.store.state_hash(context.network.id, block).then(refuse)


@registry.method(
    "eth_getStorageValues",
    params=[
        Param("positions", slots_by_address, POSITIONS_BY_ADDRESS),
        STATE_BLOCK,
    ],
    result=named("values", POSITIONS_BY_ADDRESS),
    summary="Returns the values at many storage positions after one block.",
    credits=10,
)
def get_storage_values(
    context: Context, positions: dict[bytes, list[int]], block: BlockReference
) -> Later[bytes]:
    """Return each address with its words, in the order of the positions."""
    slots = [(account, slot) for account, many in positions.items() for slot in many]
    if len(slots) > MAX_SLOTS:
        raise TooManySlots(MAX_SLOTS)
    if not slots:
        raise InvalidParams("empty request")
    words = context.store.storage_values(context.network.id, slots, block)
    return words.then(partial(_words_by_address, positions))


def _words_by_address(positions: dict[bytes, list[int]], words: list[bytes]) -> bytes:
    rest = iter(words)
    members = [
        data(account) + b":[" + b",".join([data(next(rest)) for _ in many]) + b"]"
        for account, many in positions.items()
    ]
    return b"{" + b",".join(members) + b"}"
