"""Errors that a client is told about, one class for each.

The classes are the one source of codes, HTTP statuses, headers and documentation.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

MAX_METHOD_BYTES = 2048
"""Longest name of a method; geth's limit."""


class RpcError(Exception):
    """Raised when a call, or a whole request, is answered with an error object.

    http_status: the answer's status when the error is of the request as a whole.
    code: the error object's number.
    reason: a stable word in `data.reason`; "" where the words are geth's, which come
        without data.
    text: the message of errors that need no other.
    message: a sentence that can stand alone.
    headers: what the answer carries besides.
    costs_full_price: whether the call's work was done, in vain; others cost little.
    details: what stands in `data` beside the reason.
    """

    http_status: ClassVar[int] = 200
    code: ClassVar[int] = -32000
    reason: ClassVar[str] = ""
    text: ClassVar[str] = ""
    headers: dict[str, str] = {}
    costs_full_price: ClassVar[bool] = False

    def __init__(self, message: str = "", **details: object) -> None:
        self.message = message or self.text
        self.details = details
        super().__init__(self.message)

    @property
    def data(self) -> dict[str, object] | None:
        """The error object's `data`, None when it has none."""
        if not self.reason:
            return None
        see = f"/docs/errors#{self.reason}"
        return {"reason": self.reason, "see": see, **self.details}


class ParseError(RpcError):
    """Raised when a body is not JSON."""

    http_status = 400
    code = -32700
    text = "parse error"


class InvalidRequest(RpcError):
    """Raised when JSON is not a request object."""

    http_status = 400
    code = -32600
    text = "invalid request"


class EmptyBatch(RpcError):
    """Raised when a batch holds no call."""

    code = -32600
    text = "empty batch"


class BatchTooLarge(RpcError):
    """Raised when a batch holds more calls than are allowed."""

    code = -32600
    text = "batch too large"


class MethodNameTooLong(RpcError):
    """Raised when a method's name can't be one."""

    code = -32600

    def __init__(self, length: int, limit: int) -> None:
        super().__init__(f"method name too long: {length} > {limit}")


class MethodNotFound(RpcError):
    """Raised when there is no method of a name."""

    code = -32601

    def __init__(self, method: str) -> None:
        super().__init__(f"the method {method} does not exist/is not available")


class NotificationsNotSupported(RpcError):
    """Raised when a subscription is asked for on a connection that can't push."""

    code = -32601
    text = "notifications not supported"


def unknown_method(name: str) -> RpcError:
    """Return the error of calling a method that is not registered."""
    length = len(name.encode("utf-8", "surrogatepass"))
    if length > MAX_METHOD_BYTES:
        return MethodNameTooLong(length, MAX_METHOD_BYTES)
    if name.endswith("_subscribe"):
        return NotificationsNotSupported()
    return MethodNotFound(name)


class InvalidParams(RpcError):
    """Raised when arguments are missing, too many or wrong."""

    code = -32602
    text = "invalid params"


class InternalError(RpcError):
    """Raised when a method failed in a way that is our fault; the log tells more."""

    code = -32603
    text = "method handler crashed"


class ServiceUnavailable(RpcError):
    """Raised when what a call needs does not answer, for the time being."""

    http_status = 503
    code = -32603
    reason = "unavailable"
    text = "service temporarily unavailable"
    headers = {"Retry-After": "1"}


class RequestTimedOut(RpcError):
    """Raised for each call that was not answered before the request's deadline."""

    code = -32002
    text = "request timed out"
    costs_full_price = True


class ResponseTooLarge(RpcError):
    """Raised for each call of a batch whose answers have filled the response."""

    code = -32003
    text = "response too large"
    costs_full_price = True


class BodyTooLarge(RpcError):
    """Raised when a body is longer than allowed.

    limit: bytes.
    """

    http_status = 413
    code = -32600
    reason = "body_too_large"
    headers = {"Connection": "close"}

    def __init__(self, limit: int) -> None:
        super().__init__(f"request body too large: limit {limit} bytes", limit=limit)


class BodyTooSlow(RpcError):
    """Raised when a body has not arrived before the request's deadline."""

    http_status = 408
    code = -32002
    reason = "body_too_slow"
    text = "request body too slow"
    headers = {"Connection": "close"}


class MethodNotAllowed(RpcError):
    """Raised when a request is no POST."""

    http_status = 405
    code = -32600
    reason = "http_method_not_allowed"
    text = "POST only"
    headers = {"Allow": "POST, OPTIONS"}


class UnsupportedMediaType(RpcError):
    """Raised when a body is not said to be JSON."""

    http_status = 415
    code = -32600
    reason = "unsupported_media_type"
    text = "content-type must be application/json"
    headers = {"Accept-Post": "application/json"}


def error_classes(base: type[RpcError] = RpcError) -> Iterator[type[RpcError]]:
    """Yield every kind of error that is imported, in the order of definition."""
    for error_class in base.__subclasses__():
        yield error_class
        yield from error_classes(error_class)
