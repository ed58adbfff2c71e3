"""`eth_subscribe` and `eth_unsubscribe`, which need a WebSocket.

Source: https://geth.ethereum.org/docs/interacting-with-geth/rpc/pubsub; go-ethereum
    rpc/handler.go `handleSubscribe`
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from jsonrpc.errors import InvalidParams, NotificationsNotSupported
from jsonrpc.params import Param, Signature
from jsonrpc.text import dump
from nodeapi.encoding import boolean, rpc_id, text
from nodeapi.errors.sockets import NoSuchSubscription, SubscriptionNotFound
from nodeapi.logs.filter import LogSelection
from nodeapi.methods.catalog import registry
from nodeapi.methods.context import Context, Notifier
from nodeapi.methods.log_criteria import log_criteria
from nodeapi.schemas.building import named
from nodeapi.schemas.logs import SUBSCRIPTION_KIND, SUBSCRIPTION_OPTIONS
from nodeapi.schemas.values import BOOLEAN, QUANTITY

_KIND = Param("kind", text, SUBSCRIPTION_KIND)
_SIGNATURES = {
    "newHeads": Signature([_KIND]),
    "logs": Signature([_KIND, Param("filter", log_criteria)]),
    "newPendingTransactions": Signature(
        [_KIND, Param("fullTransactions", boolean, required=False, default=False)]
    ),
    "syncing": Signature([_KIND]),
}
"""The parameters of each kind of subscription."""


@registry.method(
    "eth_subscribe",
    params=[
        _KIND,
        Param(
            "subscriptionOptions", log_criteria, SUBSCRIPTION_OPTIONS, required=False
        ),
    ],
    takes_params=True,
    result=named("subscription", QUANTITY),
    summary="Opens a subscription on a WebSocket, and returns its id.",
    needs_socket=True,
)
def subscribe(context: Context, params: object) -> Coroutine[Any, Any, bytes]:
    """Open a subscription. Its notifications begin after the response.

    Over HTTP the error is NotificationsNotSupported even if the parameters are invalid.
    """
    if context.notifier is None:
        raise NotificationsNotSupported
    if type(params) is not list:
        raise InvalidParams("non-array args")
    if not params or not isinstance(params[0], str):
        raise InvalidParams("expected subscription name as first argument")
    kind = params[0]
    signature = _SIGNATURES.get(kind)
    if signature is None:
        raise NoSuchSubscription(kind)
    options = signature.decode(params)[1:]
    logs = options[0].new_logs() if kind == "logs" else None
    is_full = kind == "newPendingTransactions" and options[0]
    return _subscribe(context.notifier, kind, logs, is_full)


async def _subscribe(
    notifier: Notifier, kind: str, logs: LogSelection | None, is_full: bool
) -> bytes:
    return dump(await notifier.subscribe(kind, logs, is_full=is_full))


@registry.method(
    "eth_unsubscribe",
    params=[Param("subscription", rpc_id, QUANTITY)],
    result=named("ended", BOOLEAN),
    summary="Ends a subscription of the same WebSocket.",
    needs_socket=True,
)
def unsubscribe(context: Context, subscription: str) -> bytes:
    """End a subscription.

    Raises: SubscriptionNotFound, also over HTTP, as geth does.
    """
    notifier = context.notifier
    if notifier is None or not notifier.unsubscribe(subscription):
        raise SubscriptionNotFound
    return b"true"
