"""Errors that are reported to clients, one class for each.

Codes, HTTP statuses, headers and documentation are derived from these classes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

MAX_METHOD_BYTES = 2048
"""Longest name of a method; geth's limit."""


class RpcError(Exception):
    """Raised when a call, or a whole request, is answered with an error object.

    http_status: status of the response if the error is that of the whole request.
    code: code of the error object.
    reason: a stable identifier in `data.reason`; "" for geth's errors, which have no
        data.
    text: the default message.
    message: a complete sentence.
    headers: additional headers of the response.
    costs_full_price: whether the call's work was done before the error. Other errors
        cost little.
    unknown_method: the name that was called, if no method has it; otherwise None.
    details: members of `data` besides the reason and links.
    remedy: what the caller can do, as sentences for the page of errors.
    form: the message with placeholders, for that page, if it varies.
    """

    http_status: ClassVar[int] = 200
    code: int = -32000
    reason: ClassVar[str] = ""
    text: ClassVar[str] = ""
    headers: dict[str, str] = {}
    costs_full_price: ClassVar[bool] = False
    remedy: ClassVar[str] = ""
    form: ClassVar[str] = ""
    unknown_method: str | None = None

    def __init__(self, message: str = "", **details: object) -> None:
        self.message = message or self.text
        self.details = details
        super().__init__(self.message)

    @property
    def data(self) -> object:
        """The error object's `data` without its links, or None without any."""
        if not self.reason:
            return None
        return {"reason": self.reason, **self.details}

    @property
    def links(self) -> Mapping[str, str]:
        """The members of `data` that are links, as paths of the site."""
        return {"see": f"/docs/errors#{self.reason}"} if self.reason else {}

    def linked_data(self, site: str) -> object:
        """Return the error object's `data` with links, or None without any.

        site: base URL of the links, without a final slash.
        """
        data, links = self.data, self.links
        if not links or not isinstance(data, dict):
            return data
        return {**data, **{name: site + path for name, path in links.items()}}


class ParseError(RpcError):
    """Raised when a body is not JSON."""

    remedy = "Send valid JSON in UTF-8."
    http_status = 400
    code = -32700
    text = "parse error"


class InvalidRequest(RpcError):
    """Raised when JSON is not a request object."""

    remedy = (
        'Send an object with "jsonrpc": "2.0", a method, and an id that is a number or '
        "a string."
    )
    http_status = 400
    code = -32600
    text = "invalid request"


class EmptyBatch(RpcError):
    """Raised when a batch contains no call."""

    remedy = "Put at least one call into the array."
    code = -32600
    text = "empty batch"


class BatchTooLarge(RpcError):
    """Raised when a batch contains more calls than allowed."""

    remedy = "Split the batch. The limits are on the page about limits."
    code = -32600
    text = "batch too large"


class MethodNameTooLong(RpcError):
    """Raised when a method's name exceeds the length limit."""

    form = "method name too long: <length> > <limit>"
    remedy = "Check the name of the method."
    code = -32600

    def __init__(self, length: int, limit: int) -> None:
        super().__init__(f"method name too long: {length} > {limit}")


class MethodNotFound(RpcError):
    """Raised when a method does not exist."""

    form = "the method <name> does not exist/is not available"
    remedy = "Check the spelling. The page about networks lists all methods."
    code = -32601

    def __init__(self, method: str) -> None:
        super().__init__(f"the method {method} does not exist/is not available")


class NotificationsNotSupported(RpcError):
    """Raised when a subscription is requested on a connection without notifications."""

    remedy = "Subscribe over a WebSocket, or poll a filter over HTTP."
    code = -32601
    text = "notifications not supported"


def unknown_method(name: str) -> RpcError:
    """Return the error of calling a method that is not registered."""
    length = len(name.encode("utf-8", "surrogatepass"))
    if length > MAX_METHOD_BYTES:
        return MethodNameTooLong(length, MAX_METHOD_BYTES)
    error: RpcError = MethodNotFound(name)
    if name.endswith("_subscribe"):
        error = NotificationsNotSupported()
    error.unknown_method = name
    return error


class InvalidParams(RpcError):
    """Raised when arguments are missing, too many or wrong."""

    remedy = (
        "Correct the parameter that the message names. The console describes each "
        "parameter and has an example."
    )
    code = -32602
    text = "invalid params"


class InternalError(RpcError):
    """Raised when a method fails because of an error in the service. It is logged."""

    remedy = (
        "Try again. If the error persists, send the X-Request-Id of the response to "
        "support."
    )
    code = -32603
    text = "method handler crashed"


class ServiceUnavailable(RpcError):
    """Raised when a service that a call needs is temporarily unavailable."""

    remedy = "Try again after the time in Retry-After."
    http_status = 503
    code = -32603
    reason = "unavailable"
    text = "service temporarily unavailable"
    headers = {"Retry-After": "1"}


class RequestTimedOut(RpcError):
    """Raised for each call that was not answered before the request's deadline."""

    remedy = "Request less at a time, or split the batch."
    code = -32002
    text = "request timed out"
    costs_full_price = True


class ResponseTooLarge(RpcError):
    """Raised for each call of a batch after its response has reached the size limit."""

    remedy = "Split the batch."
    code = -32003
    text = "response too large"
    costs_full_price = True


class BodyTooLarge(RpcError):
    """Raised when a body is longer than allowed.

    limit: bytes.
    """

    remedy = "Send smaller batches. The message names the limit."
    http_status = 413
    code = -32600
    reason = "body_too_large"
    headers = {"Connection": "close"}

    def __init__(self, limit: int) -> None:
        super().__init__(f"request body too large: limit {limit} bytes", limit=limit)


class BodyTooSlow(RpcError):
    """Raised when a body has not arrived before the request's deadline."""

    remedy = (
        "Send the body without delays. Check the connection and proxies in between."
    )
    http_status = 408
    code = -32002
    reason = "body_too_slow"
    text = "request body too slow"
    headers = {"Connection": "close"}


class TooManyConnections(RpcError):
    """Raised when an API key or an address has too many connections open.

    owner: "API key" or "address".
    """

    remedy = (
        "Reuse connections (HTTP keep-alive), and close those that you no longer need."
    )
    http_status = 429
    code = -32005
    reason = "too_many_connections"
    headers = {"Retry-After": "1", "Connection": "close"}

    def __init__(self, owner: str) -> None:
        super().__init__(f"too many open connections of this {owner}")


class TooManyBufferedBytes(RpcError):
    """Raised when a client's unfinished bodies and unread responses exceed their limit.

    owner: "API key" or "address", to which the requests and responses belong.
    """

    remedy = "Read responses completely before you send more requests."
    http_status = 429
    code = -32005
    reason = "too_many_buffered_bytes"
    headers = {"Retry-After": "1", "Connection": "close"}

    def __init__(self, owner: str) -> None:
        super().__init__(
            f"too many bytes of unfinished requests and unread responses of this {owner}"
        )


class BuffersFull(RpcError):
    """Raised when the buffered bytes of all clients together exceed the limit."""

    remedy = "Try again after the time in Retry-After."
    http_status = 503
    code = -32603
    reason = "buffers_full"
    text = "too many bytes of unfinished requests and unread responses; try again"
    headers = {"Retry-After": "1", "Connection": "close"}


class MethodNotAllowed(RpcError):
    """Raised when a request's HTTP method is not POST."""

    remedy = "Send the request with the HTTP method POST."
    http_status = 405
    code = -32600
    reason = "http_method_not_allowed"
    text = "POST only"
    headers = {"Allow": "POST, OPTIONS"}


class UnsupportedMediaType(RpcError):
    """Raised when a request's Content-Type is not JSON."""

    remedy = "Send the header Content-Type: application/json."
    http_status = 415
    code = -32600
    reason = "unsupported_media_type"
    text = "content-type must be application/json"
    headers = {"Accept-Post": "application/json"}


class UnsupportedContentEncoding(RpcError):
    """Raised when a request's body is compressed, according to Content-Encoding."""

    remedy = "Send the body without compression and without Content-Encoding."
    http_status = 415
    code = -32600
    reason = "unsupported_content_encoding"
    text = "the body must not be compressed"
    headers = {"Accept-Encoding": "identity"}


def error_classes(base: type[RpcError] = RpcError) -> Iterator[type[RpcError]]:
    """Yield all imported subclasses of errors, in the order of their definition."""
    for error_class in base.__subclasses__():
        yield error_class
        yield from error_classes(error_class)
