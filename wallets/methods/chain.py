"""Subscriptions: methods of a chain's scope that the node does not have.

Source: https://geth.ethereum.org/docs/interacting-with-geth/rpc/pubsub; CAIP-319
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

from jsonrpc.params import Param, anything
from jsonrpc.text import dump
from wallets.errors import Unauthorized
from wallets.methods.invocation import Invocation
from wallets.permissions import SUBSCRIPTION
from wallets.registries import chain_methods

KINDS = ("newHeads", "logs")
"""The kinds of subscriptions."""


def _kind(value: Any) -> str:
    if value not in KINDS:
        raise ValueError(f"expected one of {', '.join(KINDS)}")
    return str(value)


def _subscription(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("expected the id of a subscription")
    return value


@chain_methods.method(
    "eth_subscribe",
    params=[
        Param("kind", _kind, {"enum": list(KINDS)}),
        Param("filter", anything, {"type": "object"}, required=False),
    ],
    result={"type": "string"},
    summary="Sends new heads, or logs, as wallet_notify until the socket closes.",
)
async def subscribe(invocation: Invocation, kind: str, log_filter: Any) -> bytes:
    """Open a subscription of the socket and return its id, as JSON."""
    if SUBSCRIPTION not in invocation.granted.notifications:
        raise Unauthorized
    arguments = [] if log_filter is None else [log_filter]
    peer = invocation.context.peer
    found = peer.subscribe(invocation.scope, kind, arguments)
    return dump(await found if isinstance(found, Awaitable) else found)


@chain_methods.method(
    "eth_unsubscribe",
    params=[Param("subscription", _subscription, {"type": "string"})],
    result={"type": "boolean"},
    summary="Ends a subscription. Returns false if this socket has none with this id.",
)
def unsubscribe(invocation: Invocation, subscription: str) -> bytes:
    """End a subscription. Return as JSON whether it existed."""
    ended = invocation.context.peer.unsubscribe(invocation.scope, subscription)
    return b"true" if ended else b"false"
