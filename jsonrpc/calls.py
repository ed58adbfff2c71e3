"""State and accounting of a call, from its request to its response."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Protocol

from jsonrpc.envelope import (
    NULL,
    error_object,
    is_response,
    write_error,
    write_result,
)
from jsonrpc.errors import InternalError, InvalidRequest, RpcError
from jsonrpc.later import Later
from jsonrpc.registry import Method
from jsonrpc.stream import CHUNK_BYTES, Stream

REFUSED_CREDITS = 1
"""Credits charged for a call that is rejected, or whose result is null."""

_OUR_FAULT = InternalError.code
"""Code of errors for which no credits are charged."""


class Context(Protocol):
    """Properties of a request other than its body. Methods receive them."""

    @property
    def request_id(self) -> object:
        """The id that identifies the request in the log."""

    @property
    def customer(self) -> Hashable:
        """The id of the customer account, whose batches share a memory limit."""

    @property
    def site(self) -> str:
        """Base URL of the links in errors, without a final slash."""

    def authorise(self, method: Method) -> None:
        """Raise an RpcError if the caller lacks the method's capability."""

    def charge(self, credits: int) -> Later[None]:
        """Charge the credits that a request costs. Fails with an RpcError."""

    def refund(self, credits: int) -> None:
        """Refund credits that a call was overcharged."""

    def book(
        self, method: str | None, credits: int, size: int, error: RpcError | None
    ) -> None:
        """Record an answered call in the usage statistics.

        method: None if the method does not exist. size: bytes of the response.
        """


class NoAnswer(Exception):
    """Raised when a message gets no response, such as a notification."""


class Call:
    """The state of a call, from its parsing to its response.

    method: None if there is no such method, or if the message is not a request object.
    """

    # Defaults in the class are free; an __init__ for them would cost 0.2 µs.
    id = NULL
    name = ""
    credits = REFUSED_CREDITS
    method: Method | None = None
    arguments: tuple[Any, ...] | list[Any] = ()
    error: RpcError | None = None
    is_slow = False


async def begin_stream(stream: Stream) -> Stream | bytes:
    """Return the stream when its first chunk is available. Return a short one as bytes."""
    try:
        if stream.size <= CHUNK_BYTES:
            return await stream.read()
        await stream.begin()
    except BaseException:
        await stream.aclose()
        raise
    return stream


def wants_no_answer(error: Exception, message: object) -> bool:
    """Return whether an error is not reported: for a notification or a response.

    geth ignores incoming messages that are responses as well.
    """
    return isinstance(error, NoAnswer) or (
        isinstance(error, InvalidRequest) and is_response(message)
    )


def answered(call: Call, result: bytes, context: Context) -> bytes:
    """Return a call's element of the batch response, and record the call."""
    if call.error is None:
        answer = write_result(call.id, result)
    else:
        answer = write_error(call.id, error_object(call.error, context.site))
    count(call, len(answer), context)
    return answer


def refused(call: Call, error: RpcError, context: Context) -> bytes:
    """Reject a call of a batch before its execution.

    Return its element of the response.
    """
    call.error = error
    _reduce(call, REFUSED_CREDITS, context)
    return answered(call, b"", context)


def count(call: Call, size: int, context: Context) -> None:
    """Record a completed call, and refund credits if it cost less than its price.

    size: bytes of its response.
    """
    error = call.error
    if error is not None and not error.costs_full_price:
        due = 0 if error.code == _OUR_FAULT else REFUSED_CREDITS
        _reduce(call, due, context)
    name = None if call.method is None else call.method.name
    context.book(name, call.credits, size, error)


def _reduce(call: Call, due: int, context: Context) -> None:
    """Refund the credits that a call was charged beyond the amount due."""
    if call.credits > due:
        context.refund(call.credits - due)
        call.credits = due
