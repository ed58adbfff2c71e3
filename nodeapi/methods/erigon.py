"""`erigon_`: headers, by which Otterscan recognises a node that it can use.

Source: erigon rpc/jsonrpc/erigon_block.go
"""

from __future__ import annotations

import orjson

from jsonrpc.params import Param
from nodeapi.encoding import hash32
from nodeapi.methods.catalog import registry
from nodeapi.methods.context import Context
from nodeapi.methods.numbers import number_or_tag
from nodeapi.schemas.blocks import HEADER_OR_NULL
from nodeapi.schemas.building import named
from nodeapi.schemas.values import BLOCK_NUMBER_OR_TAG, HASH32

_BODY_MEMBERS = ("size", "transactions", "uncles", "withdrawals")
"""Members of a block object that are not part of its header."""


@registry.method(
    "erigon_getHeaderByNumber",
    params=[Param("block", number_or_tag, BLOCK_NUMBER_OR_TAG)],
    result=named("header", HEADER_OR_NULL),
    summary="Returns the header of the block with a number or tag, null when there is "
    "none.",
)
async def get_header_by_number(
    context: Context, number_or_tag: int | str
) -> bytes | None:
    """Return the header of a canonical block, with its hash."""
    found = await context.store.block_by_number(
        context.network.id, number_or_tag, False, False
    )
    return _header(found)


@registry.method(
    "erigon_getHeaderByHash",
    params=[Param("blockHash", hash32, HASH32)],
    result=named("header", HEADER_OR_NULL),
    summary="Returns the header of the block with a hash, null when there is none.",
)
async def get_header_by_hash(context: Context, block_hash: bytes) -> bytes | None:
    """Return the header of a block, canonical or not, with its hash."""
    network_id = context.network.id
    return _header(
        await context.store.block_by_hash(network_id, block_hash, False, False)
    )


def _header(document: bytes | None) -> bytes | None:
    """Return the header in a block object."""
    if document is None:
        return None
    block = orjson.loads(document)
    for name in _BODY_MEMBERS:
        block.pop(name, None)
    return orjson.dumps(block)
