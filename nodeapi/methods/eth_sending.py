"""`eth_`: transactions that customers have signed.

Source: go-ethereum internal/ethapi/api.go, TransactionAPI
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jsonrpc.params import Param
from jsonrpc.text import Number, kind
from nodeapi.encoding import any_data, data
from nodeapi.errors.relay import TransactionNotProcessed
from nodeapi.go.decoding import mismatch
from nodeapi.methods.catalog import registry
from nodeapi.methods.context import Context
from nodeapi.results.answers import Answer
from nodeapi.schemas.building import named
from nodeapi.schemas.logs import RECEIPT
from nodeapi.schemas.transactions import TRANSACTIONS
from nodeapi.schemas.values import DATA, HASH32

DEFAULT_TIMEOUT_MS = 20_000
"""Time for which eth_sendRawTransactionSync waits, unless the caller gives another one."""
MAX_TIMEOUT_MS = 60_000
"""Longest time for which it waits."""

_TRANSACTION = Param(
    "transaction",
    any_data,
    DATA,
    summary="The signed transaction as EIP-2718 encodes it. A blob transaction has its "
    "sidecar, of version 0 or 1.",
)


def _milliseconds(value: Any) -> int:
    """Decode a JSON number. 0 stands for the default."""
    if type(value) is not int or not 0 <= value < 2**64:
        found = kind(value)
        if found == "number":
            found += f" {value.text if isinstance(value, Number) else value}"
        raise ValueError(mismatch(found, "uint64"))
    return min(value, MAX_TIMEOUT_MS) or DEFAULT_TIMEOUT_MS


@registry.method(
    "eth_sendRawTransaction",
    params=[_TRANSACTION],
    encode=data,
    result=named("transactionHash", HASH32),
    summary="Checks a signed transaction, sends it to the network's upstream nodes, and "
    "returns its hash. A network without upstreams keeps it in a local pool, and no block "
    "will include it.",
    credits=10,
)
async def send_raw_transaction(context: Context, raw: bytes) -> bytes:
    """Send a transaction to all upstreams. Errors are geth's, or an upstream's.

    The recipient has to be in the key's allowlist of contracts, if there is one.
    """
    return await context.sending.send(
        context.network, raw, context.payer, _allow(context)
    )


@registry.method(
    "eth_sendRawTransactionSync",
    params=[
        _TRANSACTION,
        Param(
            "timeout",
            _milliseconds,
            {"oneOf": [{"type": "integer", "minimum": 0}, {"type": "null"}]},
            required=False,
            default=DEFAULT_TIMEOUT_MS,
            summary="Timeout in milliseconds, at most 60000; 20000 by default.",
        ),
    ],
    result=named("receipt", RECEIPT),
    summary="Sends a signed transaction like eth_sendRawTransaction, waits until a block "
    "contains it, and returns its receipt.",
    credits=20,
    is_slow=True,
)
async def send_raw_transaction_sync(
    context: Context, raw: bytes, milliseconds: int
) -> Answer:
    """Return the receipt. Raises: TransactionNotProcessed after the timeout."""
    network, payer, relay = context.network, context.payer, context.sending
    transaction_hash = await relay.send(network, raw, payer, _allow(context))
    seconds = milliseconds / 1000
    receipt = await relay.wait_for_receipt(network, transaction_hash, payer, seconds)
    if receipt is None:
        raise TransactionNotProcessed(transaction_hash, seconds)
    return receipt


@registry.method(
    "eth_pendingTransactions",
    result=named("transactions", TRANSACTIONS),
    summary="Returns the pending transactions of the node's own accounts. There are none.",
)
def pending_transactions(context: Context) -> bytes:
    """Return an empty list, because this node has no accounts."""
    return b"[]"


def _allow(context: Context) -> Callable[[bytes], None]:
    """Return a function that checks a recipient against the key's allowlist."""
    allowlists = context.grant.allowlists

    def allow(recipient: bytes) -> None:
        if allowlists is not None:
            allowlists.require_contracts([recipient])

    return allow
