"""Calls and subscriptions of a WebSocket."""

from __future__ import annotations

from jsonrpc.errors import RpcError
from nodeapi.encoding import quoted


class NoSuchSubscription(RpcError):
    """Raised when a kind of subscription does not exist.

    kind: as it was sent.
    """

    form = 'no "<kind>" subscription in eth namespace'
    remedy = "Subscribe to newHeads, logs, newPendingTransactions or syncing."
    code = -32601

    def __init__(self, kind: str) -> None:
        super().__init__(f"no {quoted(kind)} subscription in eth namespace")


class SubscriptionNotFound(RpcError):
    """Raised when a socket has no subscription with an id."""

    remedy = "Use the id that eth_subscribe returned on the same WebSocket."
    text = "subscription not found"


class TooManySubscriptions(RpcError):
    """Raised when a socket has reached the maximum number of subscriptions.

    limit: number of subscriptions.
    """

    remedy = "Unsubscribe, or open another WebSocket."
    http_status = 429
    code = -32005
    reason = "too_many_subscriptions"

    def __init__(self, limit: int) -> None:
        super().__init__(
            f"too many subscriptions on this socket: at most {limit}", limit=limit
        )


class TooManyCalls(RpcError):
    """Raised when too many calls of a socket, or too many bytes of them, are in progress.

    calls: number of frames. size: their bytes.
    """

    remedy = "Wait for responses before you send more calls on the WebSocket."
    http_status = 429
    code = -32005
    reason = "too_many_calls"

    def __init__(self, calls: int, size: int) -> None:
        super().__init__(
            f"too many calls in progress on this socket: at most {calls} frames with "
            f"{size} bytes",
            calls=calls,
            bytes=size,
        )
