"""`eth_sendRawTransaction`: transactions that customers have signed."""

from __future__ import annotations

from jsonrpc.params import Param
from nodeapi import schemas
from nodeapi.encoding import any_data, data
from nodeapi.errors import NoUpstream
from nodeapi.methods.catalog import registry
from nodeapi.methods.context import Context


@registry.method(
    "eth_sendRawTransaction",
    params=[
        Param(
            "transaction",
            any_data,
            schemas.DATA,
            summary="The signed transaction as EIP-2718 encodes it. A blob transaction "
            "has its sidecar, of version 0 or 1.",
        )
    ],
    encode=data,
    result=schemas.named("transactionHash", schemas.HASH32),
    summary="Checks a signed transaction, sends it to the network's upstream nodes, and "
    "returns its hash.",
    credits=10,
)
async def send_raw_transaction(context: Context, raw: bytes) -> bytes:
    """Send a transaction to all upstreams. Errors are geth's, or an upstream's.

    The recipient has to be in the key's allowlist of contracts, if there is one.
    """
    relay = context.pending
    if relay is None:
        raise NoUpstream(context.network.slug)
    allowlists = context.grant.allowlists

    def allow(recipient: bytes) -> None:
        if allowlists is not None:
            allowlists.require_contracts([recipient])

    return await relay.send(context.network, raw, context.payer, allow)
