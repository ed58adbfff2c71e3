"""From the bytes of a request to the bytes of its answer."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from jsonrpc.answers import (
    Answer,
    Reply,
    answerable_id,
    array,
    refusal,
    refuse_all,
    refuse_large_batch,
)
from jsonrpc.deadlines import Deadlines
from jsonrpc.departure import CallerGone, Gone, stay, unless_gone
from jsonrpc.envelope import (
    NULL,
    around_result,
    error_object,
    has_rounded_id,
    is_response,
    read_id,
    read_method,
    write_error,
    write_result,
)
from jsonrpc.errors import (
    EmptyBatch,
    InternalError,
    InvalidRequest,
    ParseError,
    RequestTimedOut,
    ResponseTooLarge,
    RpcError,
    unknown_method,
)
from jsonrpc.registry import Encoder, Method, MethodRegistry
from jsonrpc.stream import CHUNK_BYTES, ResultTooLarge, Stream
from jsonrpc.text import parse, parse_exactly

logger = logging.getLogger(__name__)

_AT_ONCE = 100
"""Calls of a batch that are under way together.

Enough for their look-ups to be merged; few enough that what a batch may read before
its response is found to be full stays bounded.
"""

_SLOW_AT_ONCE = 8
"""Calls of slow methods among them, which read much more."""


class Context(Protocol):
    """What is known of a request besides its body; handed to the methods."""

    @property
    def request_id(self) -> object:
        """Names the request in the log."""

    def authorise(self, method: Method) -> None:
        """Raise the error of a method whose capability the caller was not granted."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one request may take; geth's figures.

    response_bytes: of a batch's results, after which the rest is refused.
    seconds: until the answer begins; slow_seconds: where a method is slow.
    """

    batch_calls: int = 1000
    response_bytes: int = 25_000_000
    seconds: float = 30.0
    slow_seconds: float = 120.0


class _NoAnswer(Exception):
    """Raised when a message wants no answer."""


class _Call:
    """One call on its way: either `value`, or something to await for it, or `error`."""

    # Defaults in the class are free; an __init__ for them would cost 0.2 µs.
    id = NULL
    method = ""
    error: RpcError | None = None
    value: Any = None
    is_slow = False
    encode: Encoder


class Dispatcher:
    """Answers requests with what the methods of a registry return.

    translations: errors of what lies below the methods, and what they are told as.
    """

    def __init__(
        self,
        registry: MethodRegistry,
        limits: Limits,
        translations: Mapping[type[Exception], type[RpcError]],
    ) -> None:
        self._find = registry.find
        self._limits = limits
        self._deadlines = Deadlines(limits.seconds)
        self._slow_deadlines = Deadlines(limits.slow_seconds)
        self._translations = translations

    def respond(
        self, body: bytes, context: Context, gone: Gone = stay
    ) -> Answer | Awaitable[Answer]:
        """Answer a request, at once when nothing has to be waited for.

        gone: what to wait for to learn that nobody waits for the answer any more; slow
            methods are given up then.
        """
        call = _Call()
        message = None
        try:
            message = parse(body)
            if type(message) is not dict:
                return self._respond_to_batch(message, body, context, gone)
            if has_rounded_id(message):
                message = parse_exactly(body)
            self._begin(call, message, context)
            value = call.value
            if type(value) is bytes or not _is_awaited(value):
                return write_result(call.id, call.encode(value))
        except Exception as error:
            if _wants_no_answer(error, message):
                return b""
            return refusal(call.id, self._told(error, call, context))
        return self._respond_later(call, context, gone)

    def refuse(self, body: bytes, error: RpcError) -> Reply:
        """Answer a request that is refused as a whole, whatever it asks.

        A batch is answered with the error for each call: clients look their answers up
        by position or id, and a bare object would be found by neither.
        """
        try:
            message = parse(body)
            messages = message if type(message) is list else [message]
            if any(map(has_rounded_id, messages[: self._limits.batch_calls])):
                message = parse_exactly(body)
        except ParseError:
            return refusal(NULL, error)
        if type(message) is not list:
            return refusal(answerable_id(message) or NULL, error)
        if len(message) > self._limits.batch_calls:
            return refuse_large_batch(message, self._limits.batch_calls)
        answers = refuse_all(filter(None, map(answerable_id, message)), error)
        if not answers:
            return refusal(NULL, error)
        return Reply(error.http_status, array(answers), error.headers)

    def _begin(self, call: _Call, message: dict[str, Any], context: Context) -> None:
        """Start the call that a message makes.

        Raises: _NoAnswer, RpcError, and whatever the method raises.
        """
        call_id = read_id(message)
        if call_id is not None:
            call.id = call_id
        name = call.method = read_method(message)
        if call_id is None:
            raise _NoAnswer
        method = self._find(name)
        if method is None:
            raise unknown_method(name)
        if method.capability is not None:
            context.authorise(method)
        call.encode = method.encode
        if method.is_slow:
            call.is_slow = True
        arguments = method.signature.decode(message.get("params"))
        call.value = method.handler(context, *arguments)

    def _told(self, error: Exception, call: _Call, context: Context) -> RpcError:
        """Return what the caller is told of an error."""
        if isinstance(error, RpcError):
            return error
        for known, told in self._translations.items():
            if isinstance(error, known):
                return told()
        logger.error(
            "%s crashed in request %s",
            call.method,
            context.request_id,
            exc_info=error,
        )
        return InternalError()

    async def _respond_later(self, call: _Call, context: Context, gone: Gone) -> Answer:
        """Wait for the value of a single call."""
        deadlines = self._slow_deadlines if call.is_slow else self._deadlines
        deadline = deadlines.deadline()
        try:
            with deadline:
                value = call.value
                if type(value) is not Stream:
                    value = await (unless_gone(value, gone) if call.is_slow else value)
                if type(value) is Stream:
                    return await _begin_to_stream(call, value)
            return write_result(call.id, call.encode(value))
        except CallerGone:
            return b""
        except Exception as error:
            told = self._told(error, call, context) if not deadline.expired else None
            return refusal(call.id, told or RequestTimedOut())

    def _respond_to_batch(
        self, messages: Any, body: bytes, context: Context, gone: Gone
    ) -> Awaitable[Answer]:
        """Answer what is no object.

        Raises: RpcError when it is no batch either, or an empty one.
        """
        if type(messages) is not list:
            raise InvalidRequest
        if not messages:
            raise EmptyBatch
        if any(map(has_rounded_id, messages[: self._limits.batch_calls])):
            messages = parse_exactly(body)
        return self._answer_batch(messages, context, gone)

    def _begin_one_of_many(self, message: object, context: Context) -> _Call | None:
        """Start a call of a batch; None when it wants no answer."""
        call = _Call()
        try:
            if type(message) is not dict:
                raise InvalidRequest
            self._begin(call, message, context)
        except Exception as error:
            if _wants_no_answer(error, message):
                return None
            call.error = self._told(error, call, context)
        return call

    def _result(self, call: _Call, context: Context) -> bytes:
        """Return the result of a call as JSON; b"" when there is an error."""
        if call.error is None:
            try:
                return call.encode(call.value)
            except Exception as error:
                call.error = self._told(error, call, context)
        return b""

    async def _answer_batch(
        self, messages: list[object], context: Context, gone: Gone
    ) -> Answer:
        """Answer the calls of a batch in their order, a portion at a time."""
        if len(messages) > self._limits.batch_calls:
            return refuse_large_batch(messages, self._limits.batch_calls)
        started = asyncio.get_running_loop().time()
        answers: list[bytes] = []
        left_bytes = self._limits.response_bytes
        rest = iter(messages)
        for calls in self._portions(rest, context):
            deadline = started + self._patience(calls)
            try:
                is_late = await self._settle(calls, deadline, context, gone)
            except CallerGone:
                return b""
            for call in calls:
                if left_bytes < 0:
                    call.error = ResponseTooLarge()
                if type(call.value) is Stream:
                    await self._collect(call, left_bytes, deadline, context)
                result = self._result(call, context)
                left_bytes -= len(result)
                answers.append(_answer(call, result))
            if left_bytes < 0 or is_late:
                error = ResponseTooLarge() if left_bytes < 0 else RequestTimedOut()
                answers += refuse_all(filter(None, map(answerable_id, rest)), error)
                break
        return array(answers) if answers else b""

    def _portions(
        self, messages: Iterator[object], context: Context
    ) -> Iterator[list[_Call]]:
        """Begin the calls of a batch that want an answer, some at a time."""
        calls: list[_Call] = []
        slow = 0
        for message in messages:
            call = self._begin_one_of_many(message, context)
            if call is None:
                continue
            calls.append(call)
            slow += call.is_slow
            if len(calls) == _AT_ONCE or slow == _SLOW_AT_ONCE:
                yield calls
                calls, slow = [], 0
        if calls:
            yield calls

    def _patience(self, calls: list[_Call]) -> float:
        """Return the seconds that a batch with these calls may take."""
        is_slow = True in [call.is_slow for call in calls]
        return self._limits.slow_seconds if is_slow else self._limits.seconds

    async def _collect(
        self, call: _Call, room: int, deadline: float, context: Context
    ) -> None:
        """Make a call's stream a value, if the response to its batch has room for it.

        room: bytes.
        """
        stream: Stream = call.value
        try:
            if call.error is None and stream.size > room:
                raise ResultTooLarge(stream.size, room, stream.advice)
            if call.error is None:
                async with asyncio.timeout_at(deadline):
                    call.value = await stream.read()
        except TimeoutError:
            call.error = RequestTimedOut()
        except Exception as error:
            call.error = self._told(error, call, context)
        finally:
            await stream.aclose()

    async def _settle(
        self, calls: list[_Call], deadline: float, context: Context, gone: Gone
    ) -> bool:
        """Wait until all calls have a value or an error; return whether time is up."""
        loop = asyncio.get_running_loop()
        pending = {
            asyncio.ensure_future(call.value): call
            for call in calls
            if call.error is None and hasattr(call.value, "__await__")
        }
        if not pending:
            return loop.time() >= deadline
        waiting = asyncio.wait(pending, timeout=deadline - loop.time())
        is_slow = True in [call.is_slow for call in pending.values()]
        try:
            _, late = await (unless_gone(waiting, gone) if is_slow else waiting)
        finally:
            for future in pending:
                future.cancel()  # does nothing to one that is done
        for future, call in pending.items():
            if future in late or future.cancelled():
                call.error = RequestTimedOut()
                continue
            error = future.exception()
            if error is None:
                call.value = future.result()
            elif isinstance(error, Exception):
                call.error = self._told(error, call, context)
            else:
                raise error
        return bool(late)


def _is_awaited(value: object) -> bool:
    """Return whether a handler's value is not there yet, or not all of it."""
    return hasattr(value, "__await__") or type(value) is Stream


async def _begin_to_stream(call: _Call, stream: Stream) -> Answer:
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


def _wants_no_answer(error: Exception, message: object) -> bool:
    """Return whether nothing is said of an error: geth takes no notice of responses."""
    return isinstance(error, _NoAnswer) or (
        isinstance(error, InvalidRequest) and is_response(message)
    )


def _answer(call: _Call, result: bytes) -> bytes:
    if call.error is not None:
        return write_error(call.id, error_object(call.error))
    return write_result(call.id, result)
