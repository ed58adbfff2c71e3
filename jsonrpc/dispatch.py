"""From the bytes of a request to the bytes of its answer."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from jsonrpc.deadlines import Deadlines
from jsonrpc.envelope import (
    NULL,
    error_object,
    has_rounded_id,
    is_response,
    read_id,
    read_method,
    write_error,
    write_result,
)
from jsonrpc.errors import (
    BatchTooLarge,
    EmptyBatch,
    InternalError,
    InvalidRequest,
    MethodNameTooLong,
    MethodNotFound,
    NotificationsNotSupported,
    ParseError,
    RequestTimedOut,
    ResponseTooLarge,
    RpcError,
)
from jsonrpc.registry import Encoder, Method, MethodRegistry
from jsonrpc.text import parse, parse_exactly

logger = logging.getLogger(__name__)

_AT_ONCE = 100
"""Calls of a batch that are under way together.

Enough for their look-ups to be merged; few enough that what a batch may read before
its response is found to be full stays bounded.
"""

_MAX_METHOD_BYTES = 2048
"""Longest name of a method; geth's limit."""


class Context(Protocol):
    """What is known of a request besides its body; handed to the methods."""

    @property
    def request_id(self) -> object:
        """Names the request in the log."""

    def authorise(self, method: Method) -> None:
        """Raise the error of a method whose capability the caller was not granted."""


class Reply(NamedTuple):
    """An HTTP status, a body, and headers that the status needs."""

    status: int
    body: bytes
    headers: Mapping[str, str] = {}


Answer = bytes | Reply
"""Bytes are the body of a reply with status 200 and no headers, as most are."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one request may take; geth's figures.

    response_bytes: of a batch's results, after which the rest is refused.
    """

    batch_calls: int = 1000
    response_bytes: int = 25_000_000
    seconds: float = 30.0


class _NoAnswer(Exception):
    """Raised when a message wants no answer."""


class _Call:
    """One call on its way: either `value`, or something to await for it, or `error`."""

    # Defaults in the class are free; an __init__ for them would cost 0.2 µs.
    id = NULL
    method = ""
    error: RpcError | None = None
    value: Any = None
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
        self._translations = translations

    def respond(self, body: bytes, context: Context) -> Answer | Awaitable[Answer]:
        """Answer a request, at once when nothing has to be waited for."""
        call = _Call()
        message = None
        try:
            message = parse(body)
            if type(message) is not dict:
                return self._respond_to_batch(message, body, context)
            if has_rounded_id(message):
                message = parse_exactly(body)
            self._begin(call, message, context)
            value = call.value
            if type(value) is bytes or not hasattr(value, "__await__"):
                return write_result(call.id, call.encode(value))
        except Exception as error:
            if _wants_no_answer(error, message):
                return b""
            return _refusal(call.id, self._told(error, call, context))
        return self._respond_later(call, context)

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
            return _refusal(NULL, error)
        if type(message) is not list:
            return _refusal(_answerable_id(message) or NULL, error)
        if len(message) > self._limits.batch_calls:
            return self._refuse_large_batch(message)
        answers = _refuse_all(filter(None, map(_answerable_id, message)), error)
        if not answers:
            return _refusal(NULL, error)
        return Reply(error.http_status, _array(answers), error.headers)

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
            raise _unknown(name)
        if method.capability is not None:
            context.authorise(method)
        call.encode = method.encode
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

    async def _respond_later(self, call: _Call, context: Context) -> Answer:
        """Wait for the value of a single call."""
        deadline = self._deadlines.deadline()
        try:
            with deadline:
                value = await call.value
            return write_result(call.id, call.encode(value))
        except Exception as error:
            told = self._told(error, call, context) if not deadline.expired else None
            return _refusal(call.id, told or RequestTimedOut())

    def _respond_to_batch(
        self, messages: Any, body: bytes, context: Context
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
        return self._answer_batch(messages, context)

    def _refuse_large_batch(self, messages: Sequence[object]) -> Reply:
        """Answer, as geth does, with one error under the id of the first call.

        Beyond as many messages as are allowed none is looked for: a body may hold a
        million that are no calls.
        """
        ids = filter(None, map(_answerable_id, messages[: self._limits.batch_calls]))
        call_id = next((i for i in ids if i != NULL), NULL)
        return Reply(200, _array([write_error(call_id, error_object(BatchTooLarge()))]))

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

    async def _answer_batch(self, messages: list[object], context: Context) -> Answer:
        """Answer the calls of a batch in their order, a group at a time."""
        if len(messages) > self._limits.batch_calls:
            return self._refuse_large_batch(messages)
        deadline = asyncio.get_running_loop().time() + self._limits.seconds
        answers: list[bytes] = []
        left_bytes = self._limits.response_bytes
        for start in range(0, len(messages), _AT_ONCE):
            group = messages[start : start + _AT_ONCE]
            calls = [self._begin_one_of_many(message, context) for message in group]
            wanted = [call for call in calls if call is not None]
            is_late = await self._settle(wanted, deadline, context)
            for call in wanted:
                if left_bytes < 0:
                    call.error = ResponseTooLarge()
                result = self._result(call, context)
                left_bytes -= len(result)
                answers.append(_answer(call, result))
            if left_bytes < 0 or is_late:
                ids = map(_answerable_id, messages[start + _AT_ONCE :])
                error = ResponseTooLarge() if left_bytes < 0 else RequestTimedOut()
                answers += _refuse_all(filter(None, ids), error)
                break
        return _array(answers) if answers else b""

    async def _settle(
        self, calls: list[_Call], deadline: float, context: Context
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
        try:
            _, late = await asyncio.wait(pending, timeout=deadline - loop.time())
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


def _wants_no_answer(error: Exception, message: object) -> bool:
    """Return whether nothing is said of an error: geth takes no notice of responses."""
    return isinstance(error, _NoAnswer) or (
        isinstance(error, InvalidRequest) and is_response(message)
    )


def _unknown(name: str) -> RpcError:
    """Return the error of calling a method that is not registered."""
    length = len(name.encode("utf-8", "surrogatepass"))
    if length > _MAX_METHOD_BYTES:
        return MethodNameTooLong(length, _MAX_METHOD_BYTES)
    if name.endswith("_subscribe"):
        return NotificationsNotSupported()
    return MethodNotFound(name)


def _answerable_id(message: object) -> bytes | None:
    """Return the id under which a message is refused, None when it wants no answer.

    What is no request at all is answered under null.
    """
    call_id = None
    try:
        if type(message) is not dict:
            raise InvalidRequest
        call_id = read_id(message)
        read_method(message)
    except InvalidRequest:
        return None if is_response(message) else call_id or NULL
    return call_id


def _answer(call: _Call, result: bytes) -> bytes:
    if call.error is not None:
        return write_error(call.id, error_object(call.error))
    return write_result(call.id, result)


def _refuse_all(ids: Iterable[bytes], error: RpcError) -> list[bytes]:
    answer = error_object(error)
    return [write_error(call_id, answer) for call_id in ids]


def _refusal(call_id: bytes, error: RpcError) -> Reply:
    answer = write_error(call_id, error_object(error))
    return Reply(error.http_status, answer, error.headers)


def _array(answers: Sequence[bytes]) -> bytes:
    return b"[" + b",".join(answers) + b"]"
