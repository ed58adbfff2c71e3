"""`eth_subscribe` and `eth_unsubscribe`, which need a WebSocket.

Source: https://geth.ethereum.org/docs/interacting-with-geth/rpc/pubsub; go-ethereum
    rpc/handler.go `handleSubscribe`
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from jsonrpc.errors import InvalidParams, NotificationsNotSupported
from jsonrpc.params import Param, anything
from jsonrpc.text import dump
from nodeapi.errors.sockets import SubscriptionNotFound
from nodeapi.methods.catalog import registry
from nodeapi.methods.context import Context, Notifier
from nodeapi.schemas.building import named
from nodeapi.schemas.logs import SUBSCRIPTION_KIND, SUBSCRIPTION_OPTIONS
from nodeapi.schemas.values import BOOLEAN, QUANTITY


@registry.method(
    "eth_subscribe",
    params=[
        Param("kind", anything, SUBSCRIPTION_KIND, required=False),
        Param("subscriptionOptions", anything, SUBSCRIPTION_OPTIONS, required=False),
    ],
    result=named("subscription", QUANTITY),
    summary="Opens a subscription on a WebSocket, and returns its id.",
    needs_socket=True,
)
def subscribe(
    context: Context, kind: object, options: object
) -> Coroutine[Any, Any, bytes]:
    """Open a subscription. Its notifications begin after the response.

    The parameters are checked here and not before, because over HTTP the error has to be
    NotificationsNotSupported even if they are invalid.
    """
    if context.notifier is None:
        raise NotificationsNotSupported
    if not isinstance(kind, str):
        raise InvalidParams("expected subscription name as first argument")
    return _subscribe(context.notifier, kind, options)


async def _subscribe(notifier: Notifier, kind: str, options: object) -> bytes:
    return dump(await notifier.subscribe(kind, options))


@registry.method(
    "eth_unsubscribe",
    params=[Param("subscription", anything, QUANTITY, required=False)],
    result=named("ended", BOOLEAN),
    summary="Ends a subscription of the same WebSocket.",
    needs_socket=True,
)
def unsubscribe(context: Context, subscription: object) -> bytes:
    """End a subscription.

    Raises: SubscriptionNotFound, also over HTTP, as geth does.
    """
    notifier = context.notifier
    if (
        notifier is None
        or not isinstance(subscription, str)
        or not notifier.unsubscribe(subscription)
    ):
        raise SubscriptionNotFound
    return b"true"
