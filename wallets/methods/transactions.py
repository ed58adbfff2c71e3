"""eth_sendTransaction: filled in, confirmed by the user, sent to the network's node.

Source: https://ethereum.github.io/execution-apis/ eth_sendTransaction
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from jsonrpc.errors import InvalidParams
from jsonrpc.params import Param
from networks.directory import NetworkView
from wallets.errors import NotSent, Unauthorized
from wallets.methods.catalog import chain_methods
from wallets.methods.confirmed import signature_of, signer
from wallets.methods.invocation import Invocation
from wallets.services.sending import AWAY, NO_TRANSACTIONS
from wallets.signatures import SEND_TRANSACTION
from wallets.signing.transactions import (
    Transaction,
    Wanted,
    filled,
    read_transaction,
    to_json,
)
from wallets.upstream import Upstream, UpstreamAway, UpstreamRefused

logger = logging.getLogger(__name__)


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict) or not isinstance(value.get("from"), str):
        raise ValueError("expected a transaction object with from")
    return value


@chain_methods.method(
    SEND_TRANSACTION,
    params=[Param("transaction", _object, {"type": "object", "required": ["from"]})],
    result={"type": "string"},
    summary="Has the user sign a transaction, and sends it to the network's node.",
    is_slow=True,
)
async def send_transaction(invocation: Invocation, given: dict[str, Any]) -> bytes:
    """Return the hash of the transaction that was sent.

    Raises: Unauthorized, InvalidParams, NotSent, UserRejected and as
        `request_signature`.
    """
    account = await signer(invocation, given["from"])
    network = invocation.network
    if network is None:
        raise Unauthorized
    try:
        wanted = read_transaction(given)
        if wanted.chain_id not in (None, network.chain_id):
            raise ValueError("chainId: is not the chain of the scope")
        if not network.upstream_url:
            raise NotSent(NO_TRANSACTIONS)
        subject = await _filled(network, wanted)
    except ValueError as error:
        raise InvalidParams(str(error)) from error
    transaction = to_json(subject)
    return await signature_of(
        invocation, SEND_TRANSACTION, account, transaction=transaction
    )


async def _filled(network: NetworkView, wanted: Wanted) -> Transaction:
    """Return a transaction with gas and fees as the network's node has them.

    Raises: ValueError; NotSent, with the node's own error where it has one.
    """
    upstream = Upstream(network.upstream_url)
    try:
        chain_id, market, gas = await asyncio.gather(
            upstream.chain_id(), upstream.market(), upstream.gas(wanted)
        )
    except UpstreamAway as error:
        logger.warning("the node of %s does not answer: %s", network.slug, error)
        raise NotSent(AWAY) from error
    except UpstreamRefused as error:
        raise NotSent(error.message, error.code, error.data) from error
    if chain_id != network.chain_id:
        logger.error("the node of %s is one of another chain", network.slug)
        raise NotSent(NO_TRANSACTIONS)
    return filled(wanted, market, network.chain_id, gas)
