"""`txpool_`: the transactions that are in no block.

On a network with upstreams they are those of an upstream, otherwise those of the local
pool.

Source: go-ethereum internal/ethapi/api.go, TxPoolAPI
"""

from __future__ import annotations

from jsonrpc.params import Param, Schema
from nodeapi.encoding import address
from nodeapi.methods.catalog import registry
from nodeapi.methods.context import Context
from nodeapi.schemas.building import named, object_with
from nodeapi.schemas.transactions import TRANSACTION
from nodeapi.schemas.values import ADDRESS, QUANTITY, STRING

POOL_STATUS = object_with({"pending": QUANTITY, "queued": QUANTITY})
_BY_NONCE: Schema = {"type": "object", "additionalProperties": TRANSACTION}
_BY_SENDER: Schema = {"type": "object", "additionalProperties": _BY_NONCE}
POOL_CONTENT_FROM = object_with({"pending": _BY_NONCE, "queued": _BY_NONCE})
POOL_CONTENT = object_with({"pending": _BY_SENDER, "queued": _BY_SENDER})

_LINES: Schema = {
    "type": "object",
    "additionalProperties": {"type": "object", "additionalProperties": STRING},
}

POOL_LINES = object_with({"pending": _LINES, "queued": _LINES})


@registry.method(
    "txpool_status",
    result=named("status", POOL_STATUS),
    summary="Returns how many transactions are pending, and how many are queued.",
)
async def status(context: Context) -> bytes:
    """Return the numbers of transactions of the network's pool."""
    return await context.pools.status(context.network, context.payer)


@registry.method(
    "txpool_content",
    result=named("content", POOL_CONTENT),
    summary="Returns the pending and the queued transactions by sender and nonce.",
    credits=50,
)
async def content(context: Context) -> bytes:
    """Return the transaction objects of the network's pool."""
    return await context.pools.content(context.network, context.payer)


@registry.method(
    "txpool_contentFrom",
    params=[Param("address", address, ADDRESS)],
    result=named("content", POOL_CONTENT_FROM),
    summary="Returns the pending and the queued transactions of a sender by nonce.",
    credits=10,
)
async def content_from(context: Context, sender: bytes) -> bytes:
    """Return the transaction objects of a sender in the network's pool."""
    return await context.pools.content_from(context.network, sender, context.payer)


@registry.method(
    "txpool_inspect",
    result=named("lines", POOL_LINES),
    summary="Returns recipient, value and gas of the pool's transactions as text.",
    credits=50,
)
async def inspect(context: Context) -> bytes:
    """Return a line of text for each transaction of the network's pool."""
    return await context.pools.inspect(context.network, context.payer)
