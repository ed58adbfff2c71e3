"""`debug_`: parts of states, their differences, roots inside a block, and witnesses.

Source: go-ethereum eth/api_debug.go, ExecutionWitness; eth/tracers/api.go, IntermediateRoots
"""

from __future__ import annotations

from typing import Any

from django.conf import settings

from jsonrpc.errors import RpcError
from jsonrpc.params import Param
from nodeapi.encoding import (
    BlockReference,
    address,
    any_data,
    block_number_or_hash,
    hash32,
)
from nodeapi.errors.blocks import HeaderForHashNotFound
from nodeapi.errors.traces import BlockNotFound
from nodeapi.go.decoding import integer
from nodeapi.methods import traces
from nodeapi.methods.block_numbers import number_of_hash
from nodeapi.methods.catalog import registry
from nodeapi.methods.context import TRACE, Context
from nodeapi.methods.execution import run_task
from nodeapi.methods.node_proofs import run_with_nodes
from nodeapi.methods.trace_options import trace_config
from nodeapi.results.answers import Answer
from nodeapi.schemas.building import named
from nodeapi.schemas.state import (
    OBJECT_HEADERS,
    RLP_HEADERS,
    STORAGE_RANGE,
    WITNESS,
    WITNESS_FORM,
)
from nodeapi.schemas.traces import TRACE_OPTIONS
from nodeapi.schemas.values import (
    ADDRESS,
    ADDRESSES_OR_NULL,
    BLOCK_PARAMETER,
    DATA,
    HASH32,
    HASHES_OR_NULL,
    INTEGER,
)

_MAX_INT = 2**63 - 1
_MAX_UINT64 = 2**64 - 1


class ModifiedAccountsError(RpcError):
    """Raised when blocks to be compared do not exist, or are in the wrong order."""

    form = 'such as "start block <hash> not found"'
    remedy = "Pass two existing blocks, the older one first."


def _int(value: Any) -> int:
    """Decode a JSON number to Go's int."""
    return integer(value, "int", -_MAX_INT - 1, _MAX_INT)


def _uint64(value: Any) -> int:
    """Decode a JSON number to Go's uint64."""
    return integer(value, "uint64", 0, _MAX_UINT64)


@registry.method(
    "debug_storageRangeAt",
    params=[
        Param("block", block_number_or_hash, BLOCK_PARAMETER),
        Param("transactionPosition", _int, INTEGER),
        Param("address", address, ADDRESS),
        Param("startKey", any_data, DATA),
        Param("maxResults", _int, INTEGER),
    ],
    result=named("range", STORAGE_RANGE),
    summary="Returns the storage of an account before a transaction of a block, in the "
    "order of the hashes of its slots.",
    credits=20,
    capability=TRACE,
    is_slow=True,
)
async def storage_range_at(
    context: Context,
    block: BlockReference,
    index: int,
    account: bytes,
    start: bytes,
    count: int,
) -> Answer:
    """Return slots by the hashes of their numbers, and the next hash or null.

    index: of the transaction, 0 also for a block without any. geth ignores the index and
    returns the storage before the block.

    Raises: BlockNotFound, otherwise as `Store.state_hash` and `run_task`.
    """
    block_hash = await _block_hash(context, block)
    arguments = {
        "index": index,
        "address": account.hex(),
        "start": start.hex(),
        "count": count,
    }
    return await run_task(
        context,
        "storage_range",
        block_hash,
        arguments,
        timeout=settings.NODEAPI_TRACE_TIMEOUT,
    )


async def _block_hash(context: Context, block: BlockReference) -> bytes:
    store, network_id = context.store, context.network.id
    if block.hash is None:
        name = block.tag or block.number or 0
        block_hash = await store.canonical_hash(network_id, name)
        if block_hash is None:
            raise BlockNotFound(name)
        return block_hash
    try:
        return await store.state_hash(network_id, block)
    except HeaderForHashNotFound as error:
        raise BlockNotFound(block.hash) from error


@registry.method(
    "debug_intermediateRoots",
    params=[
        Param("blockHash", hash32, HASH32),
        Param(
            "options",
            trace_config,
            TRACE_OPTIONS,
            required=False,
            reads_text=True,
        ),
    ],
    result=named("roots", HASHES_OR_NULL),
    summary="Returns the state root after each transaction of a block, null when the block "
    "has none.",
    credits=20,
    capability=TRACE,
    is_slow=True,
)
async def intermediate_roots(
    context: Context, block_hash: bytes, options: object
) -> Answer:
    """Return the roots of a block, canonical or not. The options have no effect.

    Raises: the errors of `run_task`, such as geth's for an unknown block and block 0.
    """
    return await run_with_nodes(
        context,
        "intermediate_roots",
        block_hash,
        {},
        is_on_parent=True,
        timeout=settings.NODEAPI_TRACE_TIMEOUT,
    )


@registry.method(
    "debug_getModifiedAccountsByNumber",
    params=[
        Param("startNumber", _uint64, INTEGER),
        Param("endNumber", _uint64, INTEGER, required=False),
    ],
    result=named("addresses", ADDRESSES_OR_NULL),
    summary="Returns the accounts that a block changed, or that differ between the "
    "states after two blocks, null when there are none.",
    credits=20,
    is_slow=True,
)
async def get_modified_accounts_by_number(
    context: Context, start: int, end: int | None
) -> Answer:
    """Return the accounts in the order of their hashes. Raises: ModifiedAccountsError."""
    store, network_id = context.store, context.network.id
    start_hash = await store.canonical_hash(network_id, start)
    if start_hash is None:
        raise ModifiedAccountsError(f"start block {start:x} not found")
    if end is None:
        return await _modified_in(context, start, start_hash)
    end_hash = await store.canonical_hash(network_id, end)
    if end_hash is None:
        raise ModifiedAccountsError(f"end block {end} not found")
    return await _modified(context, (start, start_hash), (end, end_hash))


@registry.method(
    "debug_getModifiedAccountsByHash",
    params=[
        Param("startHash", hash32, HASH32),
        Param("endHash", hash32, HASH32, required=False),
    ],
    result=named("addresses", ADDRESSES_OR_NULL),
    summary="Returns the same as debug_getModifiedAccountsByNumber for the hashes of "
    "canonical blocks.",
    credits=20,
    is_slow=True,
)
async def get_modified_accounts_by_hash(
    context: Context, start_hash: bytes, end_hash: bytes | None
) -> Answer:
    """Return the accounts in the order of their hashes. Raises: ModifiedAccountsError."""
    start = await number_of_hash(context, start_hash)
    if start is None:
        raise ModifiedAccountsError(f"start block {start_hash.hex()} not found")
    if end_hash is None:
        return await _modified_in(context, start, start_hash)
    end = await number_of_hash(context, end_hash)
    if end is None:
        raise ModifiedAccountsError(f"end block {end_hash.hex()} not found")
    return await _modified(context, (start, start_hash), (end, end_hash))


async def _modified_in(context: Context, number: int, block_hash: bytes) -> Answer:
    """Return the accounts that a block changed."""
    store, network_id = context.store, context.network.id
    parent = None
    if number:
        parent = await store.canonical_hash(network_id, number - 1)
    if parent is None:
        raise ModifiedAccountsError(f"block {number:x} has no parent")
    return await _modified(context, (number - 1, parent), (number, block_hash))


async def _modified(
    context: Context, start: tuple[int, bytes], end: tuple[int, bytes]
) -> Answer:
    """Return the accounts that differ after two blocks, each a number and a hash."""
    if start[0] >= end[0]:
        raise ModifiedAccountsError(
            f"start block height ({start[0]}) must be less than end block height "
            f"({end[0]})"
        )
    await context.store.require_state(context.network, start[1])
    return await run_task(
        context,
        "modified_accounts",
        end[1],
        {"start": start[1].hex()},
        timeout=settings.NODEAPI_TRACE_TIMEOUT,
    )


TIMEOUT_SECONDS = 60.0
"""Time for the computation of the parent's tries and for the execution."""


def _header_form(value: Any) -> str:
    """Decode the form of a witness: that of its headers."""
    if type(value) is dict and not value.keys() - {"headers"}:
        form = value.get("headers", OBJECT_HEADERS)
        if form in (OBJECT_HEADERS, RLP_HEADERS):
            return str(form)
    raise ValueError('want {"headers": "object"} or {"headers": "rlp"}')


@registry.method(
    "debug_executionWitness",
    params=[
        Param("block", block_number_or_hash, BLOCK_PARAMETER),
        Param(
            "witnessForm",
            _header_form,
            WITNESS_FORM,
            required=False,
            default=OBJECT_HEADERS,
            summary="The form of headers: objects as by geth, or RLP as by other nodes, "
            "with the keys that are read or changed.",
        ),
    ],
    result=named("witness", WITNESS),
    summary="Returns the headers, contract code and trie nodes that the execution of a "
    "block reads.",
    credits=20,
    capability=TRACE,
    is_slow=True,
)
async def get_execution_witness(
    context: Context, block: BlockReference, headers: str
) -> Answer:
    """Return the witness of a block, canonical or not. headers: the form of headers."""
    block_hash = await traces.named_block(context, block)
    if block_hash is None:
        raise BlockNotFound(block.hash or block.tag or block.number or 0)
    return await run_with_nodes(
        context,
        "witness",
        block_hash,
        {"headers": headers},
        is_on_parent=True,
        timeout=TIMEOUT_SECONDS,
    )
