"""Errors of traces that are executed on demand."""

from __future__ import annotations

from collections.abc import Mapping

from jsonrpc.errors import RpcError
from nodeapi.go.fields import go_duration

SLICE_ADVICE = "request fewer transactions with fromTx and toTx"


class TraceFailed(RpcError):
    """Raised when a block cannot be traced or a tracer fails. The message is geth's."""

    form = "tracing failed: <fault>"
    remedy = "Correct the tracer or its options as the message says."
    costs_full_price = True


class ExecutionTimedOut(RpcError):
    """Raised when a trace exceeds its limit of time or memory."""

    remedy = "Trace single transactions, use a native tracer, or pass a longer timeout."
    text = "execution timeout"
    costs_full_price = True


class TraceResultTooLarge(RpcError):
    """Raised when a trace result exceeds the size limit.

    limit: bytes.
    """

    remedy = (
        "Trace fewer transactions with fromTx and toTx, or omit the stack, memory and "
        "storage."
    )
    code = -32003
    reason = "response_too_large"
    costs_full_price = True

    def __init__(self, limit: int) -> None:
        super().__init__(
            f"response too large: the trace has more than {limit} bytes; "
            f"{SLICE_ADVICE}, or omit the stack, memory and storage",
            limit=limit,
        )


class ExecutionFailed(RpcError):
    """Raised when a call cannot be executed, fails, or is reverted.

    code, message, data: members of the error object. data None: without `data`.
    gas_used: gas that was executed until then.
    is_lasting: whether the same task fails again with the same error.
    """

    form = 'such as "out of gas"'
    remedy = "Correct the call, its gas limit or its block as the message says."
    costs_full_price = True

    def __init__(
        self,
        code: int,
        message: str,
        data: object = None,
        gas_used: int = 0,
        *,
        is_lasting: bool = True,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.gas_used = gas_used
        self.is_lasting = is_lasting
        self._data = data

    @property
    def data(self) -> object:
        """The error object's `data`."""
        return self._data

    @property
    def links(self) -> Mapping[str, str]:
        """The link of an error with a reason, which a trace worker has reported."""
        data = self._data
        reason = data.get("reason") if isinstance(data, dict) else None
        return {"see": f"/docs/errors#{reason}"} if reason else {}


class TaskTimeout(RpcError):
    """Raised when an execution takes too long, or needs too much memory.

    timeout: seconds.
    """

    form = "execution aborted (timeout = <time>)"
    remedy = "Make a call that needs less time and memory, such as one for less data."
    costs_full_price = True

    def __init__(self, timeout: float) -> None:
        super().__init__(f"execution aborted (timeout = {go_duration(timeout)})")


class TaskResultTooLarge(RpcError):
    """Raised when the result or the error of an execution exceeds the size limit.

    limit: bytes. gas_used: gas that was executed.
    """

    remedy = "Make a call that returns less."
    code = -32003
    reason = "response_too_large"
    costs_full_price = True

    def __init__(self, limit: int, gas_used: int = 0) -> None:
        super().__init__(
            f"response too large: the result has more than {limit} bytes", limit=limit
        )
        self.gas_used = gas_used


class TooManyExecutions(RpcError):
    """Raised when a key has reached its limit of calls that are executed at a time.

    limit: number of calls.
    """

    remedy = "Wait for responses before you send more calls."
    http_status = 429
    code = -32005
    reason = "too_many_executions"
    headers = {"Retry-After": "1"}

    def __init__(self, limit: int) -> None:
        super().__init__(
            f"too many calls in progress: at most {limit} calls of this API key are queued "
            "or executed at a time",
            limit=limit,
        )


class TooManyConcurrent(RpcError):
    """Raised when a key has reached its limit of concurrent traces.

    A trace counts from the request until its result has been read or dropped.
    limit: number of traces.
    """

    remedy = "Wait until a trace is complete and read before you request the next one."
    http_status = 429
    code = -32005
    reason = "too_many_concurrent"
    headers = {"Retry-After": "1"}

    def __init__(self, limit: int) -> None:
        super().__init__(
            f"too many concurrent traces of this API key: at most {limit}, including traces "
            "whose responses are being read",
            limit=limit,
        )


class TooMuchUnread(RpcError):
    """Raised when the unread trace results of an account exceed its share.

    limit: bytes of all unread results of the account's keys together, in one process.
    """

    remedy = "Read long responses completely, or close their connections."
    http_status = 429
    code = -32005
    reason = "too_much_unread"
    headers = {"Retry-After": "1"}

    def __init__(self, limit: int) -> None:
        super().__init__(
            f"too many unread responses: those of this account have more than {limit} "
            "bytes; read them, or close their connections",
            limit=limit,
        )
