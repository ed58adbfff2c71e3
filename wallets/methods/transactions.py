"""eth_sendTransaction: completed here, confirmed by the user, sent by a node.

Source: https://ethereum.github.io/execution-apis/ eth_sendTransaction
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from jsonrpc.errors import InvalidParams
from jsonrpc.params import Param
from networks.directory import NetworkView
from nodeapi.upstreams.errors import UpstreamUnavailable
from wallets.errors import NotSent, Unauthorized
from wallets.methods.confirmed import signature_of, signer
from wallets.methods.invocation import Invocation
from wallets.nodes.own_node import OwnNode
from wallets.registries import chain_methods
from wallets.services.targets import NO_TRANSACTIONS, NODE_UNAVAILABLE
from wallets.signature_requests import SEND_TRANSACTION
from wallets.signing.transactions import (
    GasPrices,
    Transaction,
    TransactionRequest,
    complete,
    read_transaction,
    to_json,
)
from wallets.upstream import ChainNode, Upstream, UpstreamRefused, first_available

logger = logging.getLogger(__name__)


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict) or not isinstance(value.get("from"), str):
        raise ValueError("expected a transaction object with from")
    return value


@chain_methods.method(
    SEND_TRANSACTION,
    params=[Param("transaction", _object, {"type": "object", "required": ["from"]})],
    result={"type": "string"},
    summary="Asks the user to sign a transaction, and sends it to the network's node.",
    is_slow=True,
)
async def send_transaction(invocation: Invocation, given: dict[str, Any]) -> bytes:
    """Return the hash of the transaction that was sent.

    Raises: InvalidParams if the transaction is malformed; UserRejected; NotSent if the
        node rejects it; the errors of `services.signatures.request_signature`, such as
        Unauthorized.
    """
    account = await signer(invocation, given["from"])
    network = invocation.network
    if network is None:
        raise Unauthorized
    try:
        wanted = read_transaction(given)
        if wanted.chain_id not in (None, network.chain_id):
            raise ValueError("chainId: differs from the scope's chain")
        subject = await _complete(invocation, network, wanted)
    except ValueError as error:
        raise InvalidParams(str(error)) from error
    transaction = to_json(subject)
    return await signature_of(
        invocation, SEND_TRANSACTION, account, transaction=transaction
    )


async def _complete(
    invocation: Invocation, network: NetworkView, wanted: TransactionRequest
) -> Transaction:
    """Return the transaction with gas and fees from the first node that responds.

    A network without upstreams computes them itself.

    Raises: ValueError for contradictory fees; NotSent, with the node's own error if it
        has sent one.
    """
    nodes = await _nodes(invocation, network)

    async def ask(node: ChainNode) -> tuple[int, GasPrices, int]:
        return await asyncio.gather(node.chain_id(), node.prices(), node.gas(wanted))

    try:
        chain_id, prices, gas = await first_available(nodes, ask)
    except UpstreamUnavailable as error:
        logger.warning("the node of %s does not respond: %s", network.slug, error)
        raise NotSent(NODE_UNAVAILABLE) from error
    except UpstreamRefused as error:
        raise NotSent(error.message, error.code, error.data) from error
    if chain_id != network.chain_id:
        logger.error("the node of %s serves another chain", network.slug)
        raise NotSent(NO_TRANSACTIONS)
    return complete(wanted, prices, network.chain_id, gas)


async def _nodes(invocation: Invocation, network: NetworkView) -> list[ChainNode]:
    """Return the upstreams of a network, or this service for one without upstreams.

    Raises: NotSent if the network has no blocks, or if it started at a checkpoint and has
        no upstreams.
    """
    upstreams: list[ChainNode] = [
        Upstream(each.url, each.headers) for each in network.upstreams
    ]
    if upstreams:
        return upstreams
    if network.head_hash is None or network.checkpoint_number is not None:
        raise NotSent(NO_TRANSACTIONS)
    context = invocation.context
    wallet = context.wallet
    grant = await wallet.grant()
    user = await context.user()
    return [OwnNode(wallet.node, network, grant, context.request_id, user)]
