"""One call on its way from its request to its answer."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, Protocol

from jsonrpc.answers import Answer
from jsonrpc.envelope import (
    NULL,
    around_result,
    error_object,
    is_response,
    write_error,
    write_result,
)
from jsonrpc.errors import InternalError, InvalidRequest, RpcError
from jsonrpc.registry import Method
from jsonrpc.stream import CHUNK_BYTES, Stream

REFUSED_CREDITS = 1
"""What a call costs that is refused, or finds nothing."""

_OUR_FAULT = InternalError.code
"""Of errors that cost nothing."""


class Context(Protocol):
    """What is known of a request besides its body; handed to the methods."""

    @property
    def request_id(self) -> object:
        """Names the request in the log."""

    def authorise(self, method: Method) -> None:
        """Raise the error of a method whose capability the caller was not granted."""

    def charge(self, credits: int) -> Awaitable[None] | None:
        """Take what a request costs; raise an RpcError, when awaited, if it can't be."""

    def refund(self, credits: int) -> None:
        """Give back what a call was charged too much."""

    def book(
        self, method: str | None, credits: int, size: int, error: RpcError | None
    ) -> None:
        """Count a call that is answered.

        method: None where there is none of the name. size: bytes of its answer.
        """


class NoAnswer(Exception):
    """Raised when a message wants no answer."""


class Call:
    """A call: to be carried out, or with a value, or something to await for it, or error.

    method: None for one that there is not, or that is refused.
    """

    # Defaults in the class are free; an __init__ for them would cost 0.2 µs.
    id = NULL
    name = ""
    credits = REFUSED_CREDITS
    method: Method | None = None
    arguments: tuple[Any, ...] | list[Any] = ()
    error: RpcError | None = None
    value: Any = None
    is_slow = False


def is_awaited(value: object) -> bool:
    """Return whether a handler's value is not there yet, or not all of it."""
    return hasattr(value, "__await__") or type(value) is Stream


async def begin_to_stream(call: Call, stream: Stream) -> Answer:
    """Return the answer that a stream is the result of; as bytes, if it is short."""
    try:
        if stream.size <= CHUNK_BYTES:
            return write_result(call.id, await stream.read())
        await stream.begin()
    except BaseException:
        await stream.aclose()
        raise
    stream.enclose(*around_result(call.id))
    return stream


def wants_no_answer(error: Exception, message: object) -> bool:
    """Return whether nothing is said of an error: geth takes no notice of responses."""
    return isinstance(error, NoAnswer) or (
        isinstance(error, InvalidRequest) and is_response(message)
    )


def answered(call: Call, result: bytes, context: Context) -> bytes:
    """Return what stands for a call in the answer to its batch, and count it."""
    if call.error is None:
        answer = write_result(call.id, result)
    else:
        answer = write_error(call.id, error_object(call.error))
    count(call, len(answer), context)
    return answer


def refused(call: Call, error: RpcError, context: Context) -> bytes:
    """Refuse a call of a batch that was not begun."""
    call.error = error
    _reduce(call, REFUSED_CREDITS, context)
    return answered(call, b"", context)


def count(call: Call, size: int, context: Context) -> None:
    """Book a call that is answered; it was charged as if it would succeed.

    size: bytes of its answer.
    """
    error = call.error
    if error is not None and not error.costs_full_price:
        due = 0 if error.code == _OUR_FAULT else REFUSED_CREDITS
        _reduce(call, due, context)
    name = None if call.method is None else call.method.name
    context.book(name, call.credits, size, error)


def _reduce(call: Call, due: int, context: Context) -> None:
    """Give back what a call was charged beyond what is due."""
    if call.credits > due:
        context.refund(call.credits - due)
        call.credits = due
