"""JSON-RPC errors for requests that exceed the limits of their key."""

from __future__ import annotations

from datetime import UTC, datetime
from math import ceil

from jsonrpc.errors import RpcError


class RateLimited(RpcError):
    """Raised when a key exceeds its rate.

    rate: credits a second. wait_seconds: after which the same request succeeds, if the
    key spends nothing until then.
    """

    remedy = (
        "Wait for the time in Retry-After, and distribute calls evenly. A larger plan "
        "has a higher rate."
    )
    http_status = 429
    code = -32005
    reason = "rate_limited"

    def __init__(self, rate: int, wait_seconds: float) -> None:
        super().__init__(
            f"request rate exceeded: {rate} credits per second",
            allowed_credits_per_second=rate,
            backoff_seconds=round(wait_seconds, 3),
        )
        self.headers = {"Retry-After": str(max(1, ceil(wait_seconds)))}


class DailyQuotaExceeded(RpcError):
    """Raised when a key has spent its credits of the day.

    There is no Retry-After header, because clients would sleep until midnight.
    limit: credits. day: days since 1970.
    """

    remedy = "Wait until 00:00 UTC, or ask support for a larger plan."
    http_status = 402
    code = -32005
    reason = "daily_quota"

    def __init__(self, limit: int, day: int) -> None:
        resets_at = datetime.fromtimestamp((day + 1) * 86_400, UTC)
        super().__init__(
            "daily credit quota exceeded; resets at 00:00 UTC",
            limit=limit,
            resets_at=f"{resets_at:%Y-%m-%dT%H:%M:%SZ}",
        )


class TooCostly(RpcError):
    """Raised when a request costs more credits than the burst of its key.

    credits: the cost of the request. burst: the limit.
    """

    remedy = "Send fewer calls in one batch."
    code = -32600
    reason = "batch_too_costly"

    def __init__(self, credits: int, burst: int) -> None:
        super().__init__(
            f"batch needs {credits} credits, more than this key's burst of {burst}"
            ": split it",
            credits=credits,
            burst=burst,
        )
