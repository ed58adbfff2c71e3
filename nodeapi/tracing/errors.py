"""How a trace that is executed on demand can fail."""

from __future__ import annotations

from jsonrpc.errors import RpcError

SLICE_ADVICE = "ask for fewer transactions with fromTx and toTx"


class TraceFailed(RpcError):
    """Raised when a block cannot be traced or a tracer fails, in geth's words."""

    costs_full_price = True


class ExecutionTimedOut(RpcError):
    """Raised when a trace took longer, or more memory, than it may."""

    text = "execution timeout"
    costs_full_price = True


class TraceResultTooLarge(RpcError):
    """Raised when an answer is longer than is ever kept.

    limit: bytes.
    """

    code = -32003
    reason = "response_too_large"
    costs_full_price = True

    def __init__(self, limit: int) -> None:
        super().__init__(
            f"response too large: the trace has more than {limit} bytes; "
            f"{SLICE_ADVICE}, or leave the stack, memory and storage out",
            limit=limit,
        )


class TooManyConcurrent(RpcError):
    """Raised when a key has as many traces in execution as it may.

    limit: how many.
    """

    http_status = 429
    code = -32005
    reason = "too_many_concurrent"
    headers = {"Retry-After": "1"}

    def __init__(self, limit: int) -> None:
        super().__init__(
            f"too many traces at once: this key may have {limit} in execution",
            limit=limit,
        )
